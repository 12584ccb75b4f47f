//! Whether a one-time token is one-time: many take it at once, in two ways; and what no token covers.

use futures_util::future::join_all;
use serde::Serialize;

use super::{Connection, KEPT_MS, Server};
use crate::error::Result;

/// How a service takes a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Whoever deletes it has it: what DEL answers says so.
    Del,
    /// It is looked for, and deleted if it is there.
    GetThenDel,
}

impl Way {
    pub const ALL: [Self; 2] = [Self::Del, Self::GetThenDel];

    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Del => "DEL, and its answer",
            Self::GetThenDel => "GET, then DEL",
        }
    }

    async fn take(self, redis: &mut Connection, token: &str) -> Result<bool> {
        match self {
            Self::Del => redis.del(token).await,
            Self::GetThenDel => {
                let is_there = redis.get(token).await?.is_some();
                if is_there {
                    redis.del(token).await?;
                }
                Ok(is_there)
            }
        }
    }
}

/// What came of tokens that many took at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub rounds: u64,
    /// Requests that got the token.
    pub accepted: u64,
    /// Tokens that more than one request got.
    pub doubled: u64,
    /// The most requests that got one token.
    pub most: u64,
}

impl Counts {
    fn add(&mut self, accepted: u64) {
        self.rounds += 1;
        self.accepted += accepted;
        self.doubled += u64::from(accepted > 1);
        self.most = self.most.max(accepted);
    }
}

/// Connections, each of which stands for one request under way.
pub struct Crowd {
    requests: Vec<Connection>,
}

impl Crowd {
    /// # Errors
    /// As [`Server::connect`].
    pub async fn gather(server: &Server, requests: usize) -> Result<Self> {
        let connecting = (0..requests).map(|_| server.connect());
        Ok(Self { requests: join_all(connecting).await.into_iter().collect::<Result<_>>()? })
    }

    /// One token for each round, which every request takes at once; `watch` is told after each round.
    ///
    /// # Errors
    /// Failure, where Redis cannot be asked.
    pub async fn race(
        &mut self,
        server: &Server,
        way: Way,
        rounds: u64,
        mut watch: impl FnMut(&Counts),
    ) -> Result<Counts> {
        let mut counts = Counts::default();
        for round in 0..rounds {
            let token = server.key(&format!("token-{round}"));
            self.requests[0].set(&token, "1", KEPT_MS).await?;
            let taken = join_all(self.requests.iter_mut().map(|redis| way.take(redis, &token))).await;
            self.requests[0].del(&token).await?;
            let taken = taken.into_iter().collect::<Result<Vec<_>>>()?;
            counts.add(taken.iter().filter(|taken| **taken).count() as u64);
            watch(&counts);
        }
        Ok(counts)
    }

    /// A gateway that gets no answer sends the same request again; refused, the buyer loads the form anew.
    ///
    /// # Errors
    /// As [`Self::race`].
    pub async fn retried(&mut self, server: &Server, rounds: u64) -> Result<Retried> {
        let mut retried = Retried { rounds, ..Retried::default() };
        let redis = &mut self.requests[0];
        for round in 0..rounds {
            let form = server.key(&format!("form-{round}"));
            redis.set(&form, "1", KEPT_MS).await?;
            let first = Way::Del.take(redis, &form).await?;
            let again = Way::Del.take(redis, &form).await?;
            let reloaded = server.key(&format!("form-{round}-reloaded"));
            redis.set(&reloaded, "1", KEPT_MS).await?;
            let anew = Way::Del.take(redis, &reloaded).await?;
            retried.refused += u64::from(first && !again);
            retried.doubled += u64::from(first && (again || anew));
        }
        Ok(retried)
    }

    /// A worker carries out the message of an accepted request and dies before it says so; the queue delivers the
    /// message again. Of each round, how many effects there were.
    ///
    /// # Errors
    /// As [`Self::race`].
    pub async fn redelivered(&mut self, server: &Server, rounds: u64) -> Result<Counts> {
        let mut counts = Counts::default();
        let redis = &mut self.requests[0];
        let [queue, working, effects] = ["queue", "working", "effects"].map(|name| server.key(name));
        for round in 0..rounds {
            let token = server.key(&format!("order-{round}"));
            redis.set(&token, "1", KEPT_MS).await?;
            if Way::Del.take(redis, &token).await? {
                redis.ask::<i64>(redis::cmd("LPUSH").arg(&queue).arg(round)).await?;
                redis.ask::<i64>(redis::cmd("PEXPIRE").arg(&queue).arg(KEPT_MS)).await?;
            }
            for _ in 0..2 {
                let moved = |from: &str, to: &str| {
                    redis::cmd("LMOVE").arg(from).arg(to).arg("RIGHT").arg("LEFT").to_owned()
                };
                redis.ask::<Option<String>>(&moved(&queue, &working)).await?;
                redis.ask::<i64>(redis::cmd("INCR").arg(&effects)).await?;
                // It dies here. When it is missed, its message goes back.
                redis.ask::<Option<String>>(&moved(&working, &queue)).await?;
            }
            counts.add(redis.get(&effects).await?.and_then(|n| n.parse().ok()).unwrap_or(0));
            for key in [&queue, &working, &effects] {
                redis.del(key).await?;
            }
        }
        Ok(counts)
    }
}

/// What came of requests whose answer was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Retried {
    pub rounds: u64,
    /// The retry was refused, though the first request had been accepted: the buyer is told no.
    pub refused: u64,
    /// The buyer's next attempt was accepted: a second order.
    pub doubled: u64,
}
