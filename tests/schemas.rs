//! The worked examples of schemas that are not ours, as a site would run them: from `init` to `thaw`
//! by whole commands, with the outcome read out of the site's own tables.

mod common;
#[path = "schemas/example.rs"]
mod example;
#[path = "schemas/mariadb_shop.rs"]
mod mariadb_shop;
#[path = "schemas/postgres_tickets.rs"]
mod postgres_tickets;
