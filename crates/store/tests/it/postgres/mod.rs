//! PostgreSQL passes the suite that every back end has to pass, and keeps what a file keeps.

mod agreement;
mod errors;
mod ledger;
mod lost;
pub(crate) mod server;
mod tls;

use crate::export::log_row;
use kittiwake_model::{Commit, Group, Identity, Key, Object, Outcome, OutcomeCode};
use kittiwake_model::{Discovery, Reference, Standing, Table, Value, WorldTime};
use kittiwake_store::suite::{Inspect, Place};
use kittiwake_store::{Location, OpenMode, PostgresStore, Store, StoreError};
use server::Schema;

impl Place for Schema {
    fn open(&self) -> Result<Box<dyn Inspect>, StoreError> {
        Ok(Box::new(open(self)))
    }

    fn location(&self) -> Location {
        Location::Server(self.url.clone())
    }
}

fn open(schema: &Schema) -> PostgresStore {
    PostgresStore::open(&schema.url, OpenMode::Crawl).unwrap()
}

pub(crate) fn schema() -> Schema {
    server::shared().schema()
}

kittiwake_store::store_suite!(schema);

/// An answer about one user, to be committed.
fn visit(number: i64) -> Commit {
    let user = Object {
        identity: Identity {
            network: "mastodon".into(),
            kind: "user".into(),
            canonical: Some(format!("user {number}")),
            aliases: Vec::new(),
        },
        known_as: None,
        table: Table::Users,
        groups: vec![Group {
            name: "card".into(),
            fields: vec![("display_name".into(), Value::Text("Alice".to_owned()))],
        }],
        standing: Standing::Present,
    };
    Commit {
        at: WorldTime(number),
        objects: vec![user],
        discoveries: vec![Discovery {
            subject: Reference::Object(0),
            depth: 0,
        }],
        log: Some(log_row()),
        ..Commit::default()
    }
}

/// The outcome of one more visit to a subject; the store counts them.
fn told(subject: Key) -> Commit {
    Commit {
        at: WorldTime(1),
        outcomes: vec![Outcome {
            subject,
            query: "profile".into(),
            code: OutcomeCode::Ok,
            reason: String::new(),
        }],
        ..Commit::default()
    }
}

async fn number(store: &dyn Inspect, sql: &str) -> i64 {
    let rows = store.select(sql.to_owned()).await.unwrap();
    rows[0][0].as_ref().unwrap().parse().unwrap()
}

/// Commits a visit; gives the key of its user.
async fn visited(store: &dyn Store, at: i64) -> Key {
    let mut reports = store.commit(vec![visit(at)]).await.unwrap();
    reports.pop().unwrap().discovered[0]
}
