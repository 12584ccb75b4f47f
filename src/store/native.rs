//! Connections of the drivers themselves, which tell every type; the common one knows few.

use sqlx::any::{AnyTypeInfo, AnyTypeInfoKind};
use sqlx::{
    Column as _, Connection as _, Executor as _, MySqlConnection, PgConnection, Postgres, SqliteConnection,
    Statement as _, Type, TypeInfo as _,
};

use crate::store::Dialect;
use crate::store::sql::{Statement, Value};

/// A connection of the driver itself, which tells every type; the common one knows few.
pub(super) enum Native {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    Mysql(MySqlConnection),
}

/// A column that SQL gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// As the database names it.
    pub type_name: String,
    pub kind: Kind,
}

/// What can be read out of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Int,
    /// Each value has its own: an expression on SQLite.
    Unknown,
    /// Nothing that onefold reads.
    Other,
}

impl Native {
    pub(super) async fn connect(url: &str, dialect: Dialect) -> sqlx::Result<Self> {
        Ok(match dialect {
            Dialect::Sqlite => Self::Sqlite(SqliteConnection::connect(url).await?),
            Dialect::Postgres => Self::Postgres(PgConnection::connect(url).await?),
            Dialect::Mysql => Self::Mysql(MySqlConnection::connect(url).await?),
        })
    }

    pub(super) async fn close(self) -> sqlx::Result<()> {
        match self {
            Self::Sqlite(connection) => connection.close().await,
            Self::Postgres(connection) => connection.close().await,
            Self::Mysql(connection) => connection.close().await,
        }
    }

    pub(super) async fn prepare(&mut self, statement: &Statement) -> sqlx::Result<Vec<Column>> {
        let sql = statement.text();
        Ok(match self {
            Self::Sqlite(connection) => columns::<sqlx::Sqlite>(connection.prepare(sql).await?.columns()),
            Self::Postgres(connection) => {
                let types: Vec<_> = statement
                    .arguments
                    .iter()
                    .map(|value| match value {
                        Value::Int(_) => <i64 as Type<Postgres>>::type_info(),
                        _ => <String as Type<Postgres>>::type_info(),
                    })
                    .collect();
                columns::<Postgres>(connection.prepare_with(sql, &types).await?.columns())
            }
            Self::Mysql(connection) => columns::<sqlx::MySql>(connection.prepare(sql).await?.columns()),
        })
    }
}

/// Whether a column of a ledger holds whole numbers; all others hold text.
pub(super) fn is_int(name: &str) -> bool {
    name.ends_with("_us") || name.ends_with("_minor") || ["quantity", "attempts", "shard"].contains(&name)
}

fn columns<DB: sqlx::Database>(columns: &[DB::Column]) -> Vec<Column>
where
    AnyTypeInfo: for<'a> TryFrom<&'a DB::TypeInfo>,
{
    let kind = |of: &DB::TypeInfo| match AnyTypeInfo::try_from(of) {
        Ok(any) => match any.kind {
            AnyTypeInfoKind::Text | AnyTypeInfoKind::Blob => Kind::Text,
            AnyTypeInfoKind::SmallInt | AnyTypeInfoKind::Integer | AnyTypeInfoKind::BigInt => Kind::Int,
            AnyTypeInfoKind::Null => Kind::Unknown,
            AnyTypeInfoKind::Bool | AnyTypeInfoKind::Real | AnyTypeInfoKind::Double => Kind::Other,
        },
        Err(_) => Kind::Other,
    };
    let column = |column: &DB::Column| Column {
        name: column.name().to_owned(),
        type_name: column.type_info().name().to_owned(),
        kind: kind(column.type_info()),
    };
    columns.iter().map(column).collect()
}
