//! Sends the same request many times at once to a service of the user's.

use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::iter;

use crate::core::replies::{Replies, Reply, Shot};
use crate::error::Result;
use crate::providers::http::secrets::Secrets;
use crate::providers::http::wire::{Exchange, Outgoing, Wire};

/// What is sent, and how often.
pub struct Target<'a> {
    pub wire: &'a Wire,
    /// The request without its key.
    pub outgoing: Outgoing,
    pub key_header: String,
    /// What is never told, also where the service sends it back.
    pub secrets: Secrets,
    /// JSON pointers to members that do not count.
    pub ignored: Vec<String>,
    pub timeout: std::time::Duration,
    pub rounds: u64,
    pub requests: usize,
    pub concurrency: usize,
}

impl Target<'_> {
    /// Sends every round's requests under one key, which `key` gives; `watch` hears of each round that is done.
    ///
    /// # Errors
    /// Usage, where a key cannot stand in a header.
    pub async fn run(&self, key: impl Fn() -> String, watch: impl Fn(&Replies)) -> Result<Replies> {
        let mut replies = Replies::default();
        for _ in 0..self.rounds {
            let key = key();
            let outgoing = self.outgoing.clone().header(&self.key_header, &key)?;
            let shots: Vec<_> = iter(0..self.requests)
                .map(|_| self.shoot(&outgoing))
                .buffer_unordered(self.concurrency)
                .collect()
                .await;
            replies.add(&key, &shots);
            watch(&replies);
        }
        Ok(replies)
    }

    async fn shoot(&self, outgoing: &Outgoing) -> (Shot, u64) {
        let began = Instant::now();
        let shot = match self.wire.exchange(outgoing, self.timeout).await {
            Exchange::Reply(reply) => {
                Shot::Answered(Reply::new(reply.status, &reply.bytes, reply.body.as_ref(), &self.ignored))
            }
            Exchange::NotSent(why) => Shot::NotSent(self.secrets.masked(&why)),
            Exchange::Lost(why) => Shot::Lost(self.secrets.masked(&why)),
        };
        (shot, u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}
