//! What is tried on a real Redis: how code releases and renews a lock, and whether a one-time token is
//! one-time. Every key is of a trial's own, under a random prefix, expires by itself, and is removed.

pub mod lock;
pub mod token;

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisError, RedisResult};

use crate::error::{Error, Result};

/// How long a connection and an answer are waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// After how many milliseconds a key of a trial is gone, whatever becomes of the trial.
pub(super) const KEPT_MS: u64 = 60_000;

/// A Redis, and the prefix of every key that is used in it.
pub struct Server {
    client: Client,
    /// Host and port, for people: never the password.
    pub label: String,
    prefix: String,
}

/// One connection.
pub struct Connection(MultiplexedConnection);

impl Server {
    /// Reads where it is; `prefix` is random.
    ///
    /// # Errors
    /// Usage, where the URL is none of Redis; its text, which may hold a password, is not told.
    pub fn new(url: &str, prefix: String) -> Result<Self> {
        let bad = |why: &str| {
            Error::usage(format!("the URL is none of Redis: {why}"))
                .hint("--redis redis://HOST:6379, or rediss://HOST:6379 with TLS; /N after it for database N")
        };
        let parsed = url::Url::parse(url).map_err(|e| bad(&e.to_string()))?;
        if !matches!(parsed.scheme(), "redis" | "rediss") {
            return Err(bad("it begins with neither redis:// nor rediss://"));
        }
        if !parsed.has_host() {
            return Err(bad("it names no host"));
        }
        // Whatever else stands there would be left aside without a word, a password too.
        if parsed.query_pairs().any(|(name, _)| name != "protocol") {
            return Err(bad("nothing but ?protocol= may stand in its query"));
        }
        let database = parsed.path().trim_start_matches('/');
        if !database.is_empty() && database.parse::<u32>().is_err() {
            return Err(bad("what stands after the host is no number of a database"));
        }
        let client = Client::open(url).map_err(|_| bad("it cannot be read"))?;
        // The default that TLS takes where several are built in; one that is set already is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let host = parsed.host_str().unwrap_or_default();
        Ok(Self { client, label: format!("{host}:{}", parsed.port().unwrap_or(6379)), prefix })
    }

    /// Connects, and proves that it answers.
    ///
    /// # Errors
    /// Failure, where it cannot be reached or refuses.
    pub async fn connect(&self) -> Result<Connection> {
        let how = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connected = self.client.get_multiplexed_async_connection_with_config(&how).await;
        let mut connection = Connection(connected.map_err(|e| failed(&self.in_words(), &e))?);
        connection
            .try_ask::<String>(Cmd::new().arg("PING"))
            .await
            .map_err(|e| failed(&self.in_words(), &e))?;
        Ok(connection)
    }

    fn in_words(&self) -> String {
        format!("redis {}", self.label)
    }

    /// A key of our own.
    pub fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.prefix)
    }
}

impl Connection {
    /// # Errors
    /// Failure, with what Redis says.
    pub async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T> {
        self.try_ask(command).await.map_err(|e| failed("redis", &e))
    }

    /// As [`Self::ask`], for whoever tells one error from another.
    pub(super) async fn try_ask<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        command.query_async(&mut self.0).await
    }

    /// Sets a key of ours, which expires.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn set(&mut self, key: &str, value: &str, ms: u64) -> Result<()> {
        self.ask(redis::cmd("SET").arg(key).arg(value).arg("PX").arg(ms)).await
    }

    /// # Errors
    /// As [`Self::ask`].
    pub async fn get(&mut self, key: &str) -> Result<Option<String>> {
        self.ask(redis::cmd("GET").arg(key)).await
    }

    /// Whether it was there.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn del(&mut self, key: &str) -> Result<bool> {
        self.ask::<i64>(redis::cmd("DEL").arg(key)).await.map(|n| n > 0)
    }
}

/// What Redis, or the way to it, says; `redis` names it.
pub(super) fn failed(redis: &str, error: &RedisError) -> Error {
    let said = error.to_string();
    let hint = match error.code() {
        Some("BUSY") => {
            "a script runs there and does not end: `redis-cli SCRIPT KILL` stops one that has not written"
        }
        Some("NOAUTH" | "WRONGPASS" | "NOPERM") => {
            "ONEFOLD_REDIS_URL may hold user and password: redis://USER:PASSWORD@HOST:6379"
        }
        _ if said.contains("DB index") => {
            "the number after the last slash is a database's; a server has 0 to 15, unless it is configured otherwise"
        }
        _ => {
            "is the server up, are host and port right, and does it want a password? ONEFOLD_REDIS_URL may hold it"
        }
    };
    Error::failure(format!("{redis}: {said}")).hint(hint)
}
