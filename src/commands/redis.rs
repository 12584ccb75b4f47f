//! Which Redis something is tried on.

use clap::Args;

use super::new_id;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::store::without_password;
use crate::trials::Server;

const VARIABLE: &str = "ONEFOLD_REDIS_URL";

/// Where the Redis is.
#[derive(Debug, Args)]
pub struct RedisFlag {
    /// The Redis, as a URL: redis://HOST:6379, or rediss:// with TLS. A password is for the variable or
    /// --password-file
    #[arg(long, value_name = "URL", env = VARIABLE, hide_env_values = true)]
    redis: Option<String>,
}

impl RedisFlag {
    /// The server, with the password that the password file has for it.
    ///
    /// # Errors
    /// Usage, where none is named, or a password stands on the command line, where anybody may read it.
    pub fn server(&self, config: &Config) -> Result<Server> {
        let Some(url) = &self.redis else {
            return Err(
                Error::usage("no Redis is named").hint(format!("--redis redis://HOST:6379, or {VARIABLE}"))
            );
        };
        let is_typed = std::env::var(VARIABLE).ok().as_ref() != Some(url);
        if is_typed && without_password(url) != *url {
            return Err(Error::usage(
                "the URL holds a password, which anybody may read in the list of processes",
            )
            .hint(format!("put the URL in {VARIABLE}, or the password in --password-file as host:port:database:user:password")));
        }
        let url = config.passwords.as_ref().map_or_else(|| url.clone(), |p| p.filled_in(url));
        Server::new(&url, new_id("onefold:trial"))
    }
}
