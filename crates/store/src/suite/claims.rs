//! Hosts that contradict one another: nobody is made one with somebody else, in whatever order the
//! claims come in.

use super::build::{
    SeedOnFailure, Seeded, With, at, card, commit, follows, number, select, unnamed, user,
};
use super::{Inspect, Make};
use kittiwake_model::{Commit, Identity, Key, Object};
use std::collections::{BTreeMap, BTreeSet};

async fn tell(store: &dyn Inspect, identity: &Identity) {
    let told = Commit {
        objects: vec![card(identity.clone(), "somebody")],
        ..at(1)
    };
    commit(store, told).await;
}

/// Whose each id is: `alias host id` by its key.
async fn holders(store: &dyn Inspect) -> BTreeMap<String, String> {
    let sql = "SELECT alias, host, id, key FROM ids";
    let mut holders = BTreeMap::new();
    for row in select(store, sql).await {
        let cells: Vec<String> = row.into_iter().map(Option::unwrap_or_default).collect();
        let id = format!("{} {} {}", cells[0], cells[1], cells[2]);
        let other = holders.insert(id.clone(), cells[3].clone());
        assert_eq!(other, None, "{id} has two holders");
    }
    holders
}

pub async fn an_alias_never_makes_one_of_two_canonical_ids(make: Make<'_>) {
    for alias in [
        Identity::local_1 as fn(Identity) -> Identity,
        Identity::address_1,
    ] {
        let place = make();
        let store = place.open().unwrap();
        tell(&*store, &alias(user("https://a/alice"))).await;
        tell(&*store, &user("https://a/bob")).await;
        let claim = alias(user("https://a/bob"));
        let report = commit(
            &*store,
            Commit {
                objects: vec![card(claim, "forged")],
                links: vec![follows(&user("https://a/bob"), &user("https://a/alice"))],
                ..at(2)
            },
        )
        .await;
        assert_eq!(report.merged, vec![]);
        assert_eq!(number(&*store, "SELECT count(*) FROM users").await, 2);
        // Whoever had it first keeps it, and what is told of the other is the other's.
        let rows = select(
            &*store,
            "SELECT c.id, u.display_name, a.id FROM users AS u
             JOIN ids AS c ON c.key = u.key AND c.canonical = 1
             LEFT JOIN ids AS a ON a.key = u.key AND a.canonical = 0 ORDER BY 1",
        )
        .await;
        let text = |cell: &str| Some(cell.to_owned());
        assert_eq!(rows[0][..2], [text("https://a/alice"), text("somebody")]);
        assert_eq!(rows[1][..2], [text("https://a/bob"), text("forged")]);
        assert!(rows[0][2].is_some() && rows[1][2].is_none(), "{rows:?}");
        assert_eq!(
            number(&*store, "SELECT count(*) FROM user_relations").await,
            1
        );
    }
}

/// Aliases as functions, for lists of them.
trait Aliased {
    fn local_1(self) -> Identity;
    fn address_1(self) -> Identity;
}

impl Aliased for Identity {
    fn local_1(self) -> Identity {
        self.local("1")
    }

    fn address_1(self) -> Identity {
        self.address("https://a/@1")
    }
}

pub async fn an_address_joins_those_who_have_no_canonical_id(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let bare = unnamed("user").address("https://a/@alice");
    tell(&*store, &bare.clone().at_host("5", "old.example")).await;
    tell(
        &*store,
        &user("https://a/alice").at_host("7", "new.example"),
    )
    .await;
    assert_eq!(number(&*store, "SELECT count(*) FROM users").await, 2);
    tell(
        &*store,
        &user("https://a/alice").address("https://a/@alice"),
    )
    .await;
    assert_eq!(number(&*store, "SELECT count(*) FROM users").await, 1);
    assert_eq!(number(&*store, "SELECT count(*) FROM ids").await, 4);
}

pub async fn a_hosts_own_id_joins_only_what_it_alone_has_named(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    let bob = unnamed("user").address("https://a/@bob");
    tell(&*store, &bob.clone().at_host("5", "old.example")).await;
    tell(&*store, &bob.clone().at_host("77", "liar.example")).await;
    // The liar says that the one whom it called bob is alice.
    tell(
        &*store,
        &user("https://a/alice").at_host("77", "liar.example"),
    )
    .await;
    assert_eq!(number(&*store, "SELECT count(*) FROM users").await, 2);
    let holders = holders(&*store).await;
    assert_eq!(holders["url  https://a/@bob"], holders["id old.example 5"]);
    assert_ne!(holders["url  https://a/@bob"], holders["  https://a/alice"]);
    // What nobody else has named is what its host says.
    let store = make();
    let store = store.open().unwrap();
    tell(&*store, &unnamed("user").at_host("78", "liar.example")).await;
    tell(
        &*store,
        &user("https://a/carol").at_host("78", "liar.example"),
    )
    .await;
    assert_eq!(number(&*store, "SELECT count(*) FROM users").await, 1);
}

pub async fn an_answer_about_somebody_else_is_somebody_else(make: Make<'_>) {
    let place = make();
    let store = place.open().unwrap();
    tell(&*store, &user("https://a/alice")).await;
    let alice = Key(number(&*store, "SELECT key FROM ids").await);
    for identity in [
        user("https://a/bob"),
        unnamed("user").address("https://a/@carol"),
    ] {
        let answer = Commit {
            objects: vec![Object {
                known_as: Some(alice),
                ..card(identity, "forged")
            }],
            ..at(2)
        };
        assert_eq!(commit(&*store, answer).await.merged, vec![]);
    }
    let sql = format!(
        "SELECT count(*) FROM users WHERE display_name = 'forged' AND key <> {}",
        alice.0
    );
    assert_eq!(number(&*store, &sql).await, 2);
}

/// What one host says of who somebody is, out of a few ids.
fn claim(dice: &mut Seeded) -> Identity {
    let mut identity = unnamed("user");
    if dice.chance(2) {
        identity.canonical = Some(format!("c{}", dice.below(3)));
    }
    if dice.chance(3) {
        identity = identity.address(&format!("u{}", dice.below(3)));
    }
    if dice.chance(2) || identity.is_anonymous() {
        let host = ["one.example", "two.example"][dice.below(2)];
        identity = identity.at_host(&dice.below(3).to_string(), host);
    }
    identity
}

fn ids_of(claim: &Identity) -> BTreeSet<String> {
    let canonical = claim.canonical.iter().map(|id| format!("  {id}"));
    let aliases = claim.aliases.iter();
    let aliases = aliases.map(|it| format!("{} {} {}", it.name, it.host, it.id));
    canonical.chain(aliases).collect()
}

/// Sets of ids that claims bring together.
fn components(claims: &[Identity]) -> Vec<BTreeSet<String>> {
    let mut components: Vec<BTreeSet<String>> = Vec::new();
    for claim in claims {
        let mut whole = ids_of(claim);
        let (with, without) = components
            .into_iter()
            .partition::<Vec<_>, _>(|it| !it.is_disjoint(&whole));
        whole.extend(with.into_iter().flatten());
        components = without;
        components.push(whole);
    }
    components
}

/// Whether nothing that is claimed of these ids contradicts anything else: they have one canonical id
/// at the most, and addresses only that were told beside it.
fn is_consistent(ids: &BTreeSet<String>, claims: &[Identity]) -> bool {
    let canonical: Vec<&String> = ids.iter().filter(|id| id.starts_with("  ")).collect();
    let addresses: Vec<&String> = ids.iter().filter(|id| id.starts_with("url ")).collect();
    match canonical.as_slice() {
        [] => addresses.len() <= 1,
        [only] => addresses.iter().all(|address| {
            let told = |claim: &Identity| {
                let ids = ids_of(claim);
                ids.contains(*only) && ids.contains(*address)
            };
            claims.iter().any(told)
        }),
        _ => false,
    }
}

pub async fn claims_in_any_order_end_equal(make: Make<'_>) {
    let mut consistent = 0;
    for seed in 0..40 {
        let _named = SeedOnFailure(seed);
        let mut dice = Seeded::new(seed);
        let mut claims: Vec<Identity> = (0..8).map(|_| claim(&mut dice)).collect();
        for _ in 0..2 {
            dice.shuffle(&mut claims);
            let place = make();
            let store = place.open().unwrap();
            for claim in &claims {
                tell(&*store, claim).await;
            }
            let holders = holders(&*store).await;
            let canonical = holders.iter().filter(|(id, _)| id.starts_with("  "));
            let keys: Vec<&String> = canonical.map(|(_, key)| key).collect();
            let distinct: BTreeSet<&&String> = keys.iter().collect();
            assert_eq!(distinct.len(), keys.len(), "{claims:?}");
            for ids in components(&claims) {
                let keys: BTreeSet<_> = ids.iter().filter_map(|id| holders.get(id)).collect();
                if is_consistent(&ids, &claims) {
                    assert_eq!(keys.len(), 1, "{ids:?} of {claims:?}");
                    consistent += 1;
                }
            }
        }
    }
    assert!(consistent > 100, "{consistent}");
}
