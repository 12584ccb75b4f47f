//! Passwords from a file in the form of PostgreSQL's: a line `host:port:database:user:password`
//! for each, where `*` stands for any and `\:` for a colon. For every kind of database, and for Redis.

use std::path::Path;

use url::Url;

use crate::error::{Error, Result};

/// The lines of a password file. Never printed.
#[derive(Clone)]
pub struct Passwords(Vec<[String; 5]>);

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Passwords({} lines)", self.0.len())
    }
}

impl Passwords {
    /// Reads a file.
    ///
    /// # Errors
    /// Usage, where it cannot be read, others than its owner may read it, or a line has not five parts.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |what: String| Error::usage(format!("the password file {}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| {
            failed(e.to_string()).hint("name one that is there with --password-file, or leave it out")
        })?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(path).map_err(|e| failed(e.to_string()))?.permissions().mode();
            if mode & 0o077 != 0 {
                return Err(failed("others than its owner may read it".to_owned())
                    .hint(format!("chmod 600 {}", path.display())));
            }
        }
        let mut lines = Vec::new();
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let parts: [String; 5] = parts(line).try_into().map_err(|parts: Vec<String>| {
                failed(format!(
                    "line {} has {} parts, not host:port:database:user:password",
                    i + 1,
                    parts.len()
                ))
                .hint("* stands for any, and \\: for a colon in a password")
            })?;
            lines.push(parts);
        }
        Ok(Self(lines))
    }

    /// The URL with its password filled in from the first line that fits, unless it has one.
    pub fn filled_in(&self, url: &str) -> String {
        let Ok(mut parsed) = Url::parse(url) else { return url.to_owned() };
        if parsed.password().is_some() || !parsed.has_host() {
            return url.to_owned();
        }
        let default_port = match parsed.scheme() {
            "redis" | "rediss" => 6379,
            scheme if scheme.starts_with("postgres") => 5432,
            _ => 3306,
        };
        let database = parsed.path().trim_start_matches('/').to_owned();
        let of_url = [
            parsed.host_str().unwrap_or_default().to_owned(),
            parsed.port().unwrap_or(default_port).to_string(),
            database,
            parsed.username().to_owned(),
        ];
        let fits = |line: &&[String; 5]| {
            line.iter().zip(&of_url).all(|(pattern, value)| pattern == "*" || pattern == value)
        };
        match self.0.iter().find(fits) {
            Some(line) if parsed.set_password(Some(&line[4])).is_ok() => parsed.into(),
            _ => url.to_owned(),
        }
    }
}

/// The parts between colons; a backslash takes the next character as it is.
fn parts(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (c, parts.last_mut()) {
            (':', _) => parts.push(String::new()),
            ('\\', Some(part)) => part.extend(characters.next()),
            (c, Some(part)) => part.push(c),
            (_, None) => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_gives_the_password() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passwords");
        std::fs::write(&path, "# ours\ndb:5432:shop:ops:p\\:1\n*:*:*:ops:other\n").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            assert!(Passwords::read(&path).is_err(), "others may read it");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let passwords = Passwords::read(&path).unwrap();
        assert_eq!(passwords.filled_in("postgres://ops@db/shop"), "postgres://ops:p%3A1@db/shop");
        assert_eq!(passwords.filled_in("mysql://ops@db/shop"), "mysql://ops:other@db/shop");
        assert_eq!(passwords.filled_in("mysql://root@db/shop"), "mysql://root@db/shop");
        assert_eq!(passwords.filled_in("mysql://ops:x@db/shop"), "mysql://ops:x@db/shop");
        assert_eq!(passwords.filled_in("sqlite:onefold.db"), "sqlite:onefold.db");
    }
}
