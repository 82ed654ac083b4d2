//! A robot of very many people: the ranking, its order on disk and the store's transactions together.
//!
//! The store's rows are written with SQL and not by a crawl, which would take days; everything from there on is
//! what a crawl does: rows are read, the order is made, the worthiest are taken, their new rows are
//! committed and filed.

use crate::Bench;
use crate::network::DAY_US;
use kittiwake_frontier::policy::{Facts, Policy, PolicySettings, Shared, State, Visit, by_name};
use kittiwake_frontier::random::Random;
use kittiwake_frontier::{Judge, Ranked};
use kittiwake_model::{Commit, CommitReport, FrontierRow, Key, Name, WorldTime};
use kittiwake_store::{OpenMode, SqliteStore, Store};
use std::collections::VecDeque;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const LANE: &str = "mastodon/sea.example/statuses";
const ROBOT: &str = "statuses";
/// Subjects that memory holds all of.
const IN_MEMORY: usize = 1_000_000;
/// Visits whose rows are committed together, as many answers may wait for one transaction.
const TOGETHER: usize = 256;
/// Groups of so many that are being read and written while the next is chosen.
const UNDER_WAY: usize = 3;
const ROWS_AT_ONCE: usize = 10_000;

/// Runs it in a process of its own, whose memory is looked at from outside.
pub(crate) fn run(bench: &Bench, subjects: u64, seconds: u64) {
    println!("\nC. {subjects} people of one robot, {seconds} s of visits\n");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--role-turnover",
            &subjects.to_string(),
            &seconds.to_string(),
        ])
        .arg(&bench.target)
        .spawn()
        .unwrap();
    let mut peak = String::new();
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let line = status.unwrap_or_default();
        if let Some(line) = line.lines().find(|line| line.starts_with("VmHWM")) {
            line.clone_into(&mut peak);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    println!(
        "memory, from outside: {}",
        peak.split_whitespace().collect::<Vec<_>>().join(" ")
    );
}

/// What the process of its own does.
pub(crate) fn turn_over(subjects: u64, seconds: u64, target: &Path) {
    let folder = tempfile::tempdir_in(target).unwrap();
    let file = folder.path().join("t.db");
    let started = Instant::now();
    fill(&file, subjects);
    println!("rows written in {:.0?}", started.elapsed());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(visit(&file, subjects, seconds));
}

/// Writes a row for each subject, visited within the last days.
fn fill(file: &Path, subjects: u64) {
    drop(SqliteStore::open(file, OpenMode::Crawl).unwrap());
    let policy = policy();
    let mut connection = rusqlite::Connection::open(file).unwrap();
    connection
        .execute_batch(
            "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; DROP INDEX frontier_by_due;",
        )
        .unwrap();
    let mut random = Random::new(3);
    let mut shared = Shared::default();
    let transaction = connection.transaction().unwrap();
    {
        let mut insert = transaction
            .prepare(
                "INSERT INTO frontier(subject, robot, lane, visits, visited_us, due_us, state)
                 VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6)",
            )
            .unwrap();
        let mut name = transaction
            .prepare(
                "INSERT INTO ids(key, hash, canonical, movable, first_seen_us, last_seen_us, network, type,
                                 alias, host, id)
                 VALUES (?1, ?1, 1, 0, 0, 0, 'mastodon', 'user', '', '', ?2)",
            )
            .unwrap();
        for subject in 1..=subjects {
            let visited = WorldTime((random.share() * 5.0 * DAY_US as f64) as i64);
            let mut state = policy.meet(&shared, &Facts::default(), WorldTime(0));
            let posts = [WorldTime(visited.0 / 2)];
            policy.observe(&mut shared, &mut state, &Visit::complete(visited, &posts));
            let due_us = visited.0 + (random.share() * 7.0 * DAY_US as f64) as i64;
            let subject = i64::try_from(subject).unwrap();
            let row = (subject, ROBOT, LANE, visited.0, due_us, state.bytes());
            insert.execute(row).unwrap();
            name.execute((subject, subject.to_string())).unwrap();
        }
    }
    transaction.commit().unwrap();
    connection
        .execute_batch(
            // As a crawl leaves them: all ids are in their places.
            "CREATE INDEX frontier_by_due ON frontier(lane, due_us, subject, visited_us);
             INSERT INTO id_places SELECT hash, rowid FROM ids ORDER BY hash, rowid;
             UPDATE rules SET value = (SELECT CAST(max(rowid) AS TEXT) FROM ids) WHERE name = 'id_places';",
        )
        .unwrap();
}

fn policy() -> Box<dyn Policy> {
    let settings = PolicySettings {
        page: 100_000,
        ..PolicySettings::default()
    };
    by_name("adaptive", &settings).unwrap()
}

/// Reads everybody, then visits the worthiest for a while.
async fn visit(file: &Path, subjects: u64, seconds: u64) {
    let policy = policy();
    let mut shared = Shared::default();
    let store = Arc::new(SqliteStore::open(file, OpenMode::Crawl).unwrap());
    let mut ranked = Ranked::default();
    let started = Instant::now();
    let index = file.with_extension("index");
    read(&store, &mut ranked, &index).await;
    println!("read and put in order in {:.0?}", started.elapsed());
    let lane: Name = LANE.into();
    let robot: Name = ROBOT.into();
    let (mut visits, mut longest) = (0_u64, Duration::ZERO);
    let mut under_way = VecDeque::new();
    // As many as would be visited once in a week.
    let gap_us = 7 * DAY_US / i64::try_from(subjects).unwrap();
    let mut now = WorldTime(6 * DAY_US);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(seconds) {
        let begun = Instant::now();
        ranked.tend().unwrap();
        ranked.bring_near(now).unwrap();
        let judge = Judge {
            policy: &*policy,
            shared: &shared,
            rest_us: 1,
        };
        let taken = ranked.lease(now, TOGETHER, judge);
        now = now.plus_us(gap_us * taken.len() as i64);
        let price = ranked.market().filing_price();
        let mut commits = Vec::with_capacity(taken.len());
        for subject in taken {
            let mut state = ranked.state_of(subject).cloned().unwrap_or_default();
            let since = state.since().unwrap_or(now);
            let posts = [WorldTime(i64::midpoint(since.0, now.0))];
            policy.observe(&mut shared, &mut state, &Visit::complete(now, &posts));
            commits.push(Commit {
                at: now,
                frontier: vec![row(
                    subject,
                    &lane,
                    &robot,
                    (now, policy.due(&shared, &state, price, now)),
                    state,
                )],
                ..Commit::default()
            });
        }
        visits += commits.len() as u64;
        under_way.push_back(visit_all(&store, commits));
        if under_way.len() > UNDER_WAY {
            let visited = under_way.pop_front().unwrap();
            file_again(&mut ranked, visited.await.unwrap(), now);
        }
        longest = longest.max(begun.elapsed());
    }
    for visited in under_way {
        file_again(&mut ranked, visited.await.unwrap(), now);
    }
    let per_second = visits as f64 / started.elapsed().as_secs_f64();
    println!(
        "{visits} visits committed: {per_second:.0} visits/s; {:.2} looks a visit; the longest {TOGETHER} took {longest:.0?}",
        ranked.market().looked_at() as f64 / visits.max(1) as f64
    );
}

/// As in a crawl: what is known of everybody is read first, and what was found is committed.
fn visit_all(store: &Arc<SqliteStore>, commits: Vec<Commit>) -> JoinHandle<Vec<CommitReport>> {
    let store = Arc::clone(store);
    let rows = commits.iter().flat_map(|commit| &commit.frontier);
    let asked: Vec<_> = rows.map(|row| (row.subject, row.robot.clone())).collect();
    tokio::spawn(async move {
        let known = store.tasks(asked).await.unwrap();
        assert_eq!(known.iter().flatten().count(), commits.len());
        store.commit(commits).await.unwrap()
    })
}

fn file_again(ranked: &mut Ranked, reports: Vec<CommitReport>, now: WorldTime) {
    for filed in reports.into_iter().flat_map(|report| report.filed) {
        let state = State::from_bytes(filed.state).unwrap();
        ranked.again(filed.subject, filed.due);
        ranked.file(filed.subject, filed.due, state, now);
    }
}

fn row(
    subject: Key,
    lane: &Name,
    robot: &Name,
    (visited, due): (WorldTime, WorldTime),
    state: State,
) -> FrontierRow {
    FrontierRow {
        subject,
        robot: robot.clone(),
        lane: lane.clone(),
        visits: 2,
        visited: Some(visited),
        due,
        state: state.into_bytes(),
    }
}

/// Reads a lane from the store into memory, and into an order on disk when that is full.
async fn read(store: &SqliteStore, ranked: &mut Ranked, index: &Path) {
    let mut after = None;
    loop {
        let rows = store.remembered_by_subject(LANE.into(), after, ROWS_AT_ONCE);
        let rows = rows.await.unwrap();
        let is_last = rows.len() < ROWS_AT_ONCE;
        after = rows.last().map(|row| row.subject);
        for row in rows {
            let state = State::from_bytes(row.state).unwrap();
            ranked.file(row.subject, row.due, state, WorldTime(6 * DAY_US));
        }
        if ranked.len() > IN_MEMORY {
            ranked.spill(index, LANE, IN_MEMORY / 4).unwrap();
        }
        ranked.tend().unwrap();
        if is_last {
            return ranked.finish_reading().unwrap();
        }
    }
}
