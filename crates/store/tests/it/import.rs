//! Importing: what is refused, what is merged, what is left alone.

use crate::export::{at, commit, exported, follow, identity, import, lines, named, store, user};
use kittiwake_model::{Commit, Discovery, Outcome, OutcomeCode, Reference};
use kittiwake_store::export::{
    Compression, CsvStyle, Destination, ExportFormat, ExportTable, ExportWriter, ImportReport,
    Importer, Input, RowSink as _, Selection,
};
use kittiwake_store::{SqliteStore, Store as _};
use std::io::{Cursor, Read};
use std::path::Path;

const AT: &str = "2026-11-15T20:30:00.000000Z";

fn relation(table: &str, times: &[(&str, &str)]) -> String {
    let times: String = times
        .iter()
        .map(|(name, at)| format!(",\"{name}\":\"{at}\""))
        .collect::<Vec<_>>()
        .concat();
    format!(
        "{{\"table\":\"{table}\",\"source_network\":\"net\",\"source_type\":\"user\",\
         \"source\":\"a\",\"target_network\":\"net\",\"target_type\":\"user\",\"target\":\"b\"\
         {times}}}\n"
    )
}

fn seen(first: i64, last: i64) -> [(&'static str, String); 2] {
    [("first_seen", iso(first)), ("last_seen", iso(last))]
}

fn iso(second: i64) -> String {
    format!("2026-11-15T20:30:{second:02}.000000Z")
}

fn present(first: i64, last: i64) -> String {
    let [first, last] = seen(first, last);
    relation("user_relations", &[(first.0, &first.1), (last.0, &last.1)])
}

fn vanished(first: i64, last: i64, vanished: i64) -> String {
    let [first, last] = seen(first, last);
    let times = [
        (first.0, &*first.1),
        (last.0, &*last.1),
        ("vanished", &iso(vanished)),
    ];
    relation("invalid_relations", &times)
}

/// A user's row with these cells and one group that has these fields.
fn user_row(cells: &str, fields: &str) -> String {
    format!(
        "{{\"table\":\"users\",\"network\":\"net\",\"type\":\"user\",\"id\":\"a\"{cells},\
         \"observed\":{{\"c\":{{\"at\":\"{AT}\",\"log\":0,\"fields\":[{fields}]}}}}}}"
    )
}

/// Lines that are no rows, and a word of the reason.
fn bad_lines() -> Vec<(String, &'static str)> {
    let plain = [
        ("not json", "expected"),
        ("{\"table\":", "EOF"),
        ("[1]", "one JSON object"),
        ("{}", "does not say its table"),
        ("{\"table\":7}", "no text"),
        ("{\"table\":\"sqlite_master\"}", "no table"),
        ("{\"table\":\"users\",\"table\":\"tags\"}", "twice"),
        ("{\"table\":\"users\",\"password\":1}", "no column"),
        ("{\"table\":\"users\"}", "network is missing"),
    ];
    let mut bad: Vec<(String, &str)> = plain
        .map(|(line, reason)| (line.to_owned(), reason))
        .to_vec();
    let deep = format!(
        ",\"extra\":{{\"x\":{}{}}}",
        "[".repeat(500),
        "]".repeat(500)
    );
    let name = user_row(",\"display_name\":\"x\"", "\"display_name\"");
    bad.extend([
        (user_row(",\"display_name\":\"x\"", ""), "no group"),
        (user_row(",\"extra\":{\"x\":1}", ""), "no group"),
        (
            user_row(",\"display_name\":7", "\"display_name\""),
            "no text",
        ),
        (user_row(",\"is_bot\":1", "\"is_bot\""), "true nor false"),
        (
            user_row(",\"followers_count\":1e3", "\"followers_count\""),
            "no integer",
        ),
        (user_row(&deep, "\"x\""), "deep"),
        (name.replace(AT, "yesterday"), "no time"),
        (name.replace("\"log\":0", "\"log\":-1"), "number of a call"),
        (
            name.replace("{\"c\":{", "[{").replace("}}}", "}]}"),
            "observed",
        ),
        (
            name.replace("\"log\":0", "\"log\":0,\"x\":0"),
            "unknown field",
        ),
        (
            name.replace(
                "\"log\":0",
                &format!("\"log\":0,\"older\":{{\"x\":{{\"at\":\"{AT}\",\"log\":0}}}}"),
            ),
            "no field",
        ),
    ]);
    let source = |id: &str| present(1, 2).replace("\"source\":\"a\"", &format!("\"source\":{id}"));
    bad.extend([
        (source("\"\""), "cannot be an id"),
        (source("\"a\\u0000\""), "cannot be an id"),
        (source("\"alias:x\""), "no id"),
        (source("7"), "no text"),
        (present(1, 2).replace("20:30:01", "25:30:01"), "no time"),
        (
            relation("user_relations", &[("first_seen", AT)]),
            "last_seen is missing",
        ),
        (present(2, 1), "before first_seen"),
        (present(1, 2).replace("2026-", "0000-"), "no time"),
        (
            format!(
                "{{\"table\":\"invalid_users\",\"network\":\"net\",\"type\":\"user\",\
                 \"id\":\"a\",\"reason\":\"bored\",\"from\":\"{AT}\"}}"
            ),
            "no outcome",
        ),
    ]);
    bad
}

#[tokio::test]
async fn a_bad_line_is_named_and_nothing_of_its_batch_is_written() {
    let good = present(1, 2);
    for (bad, expected) in bad_lines() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), "a.db");
        let text = format!("{good}\n{}\n{good}", bad.trim_end());
        let error = import(&store, &text).await.unwrap_err().to_string();
        assert!(error.starts_with("test: line 3: "), "{bad}: {error}");
        assert!(error.contains(expected), "{bad}: {error}");
        assert!(error.contains("nothing of it"), "{error}");
        assert!(error.len() < 400 && !error.contains('\n'), "{error}");
        let rows = store.summary().await.unwrap().rows;
        assert_eq!((rows["ids"], rows["user_relations"]), (0, 0), "{bad}");
    }
}

#[tokio::test]
async fn a_bad_record_is_named_by_its_line() {
    let header = "user_network,user_type,user,tag_network,tag_type,tag,first_seen,last_seen\n";
    let good = format!("net,user,\"a\nb\",net,tag,t,{AT},{AT}\n").replace("a\nb", "ab");
    for (text, expected) in [
        (
            format!("{header}{good}net,user\n"),
            "line 3: 2 fields where the header has 8",
        ),
        (
            format!("{header}{good}net,user,a,net,tag,t,never,{AT}\n"),
            "line 3: first_seen",
        ),
        (
            format!("{header}{good}net,user,\"a\nb\",net,tag,t,{AT},{AT}\n"),
            "line 3: user: ",
        ),
        (format!("{header}{good}net,user,\"a"), "line 3: "),
        ("a,b\n1,2\n".to_owned(), "--table"),
        ("\n".to_owned(), "--table"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), "a.db");
        let error = import(&store, &text).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert_eq!(store.summary().await.unwrap().rows["ids"], 0);
    }
    // A header of another version says which table it is of, or is told.
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let text = format!(
        "last_seen,first_seen,tag,tag_type,tag_network,user,user_type,user_network\n{AT},{AT},t,tag,net,a,user,net\n"
    );
    let bytes = Box::new(Cursor::new(text));
    let input = Input::new("old", Some(ExportTable::UserTags), bytes).unwrap();
    let mut importer = Importer::new(&store);
    importer.read(input, &mut |_| {}).await.unwrap();
    assert_eq!(importer.report().rows_new, 3);
}

/// Bytes without an end and without a line break.
struct Endless(u8);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        buffer.fill(self.0);
        Ok(buffer.len())
    }
}

#[tokio::test]
async fn a_line_without_an_end_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let header = "user_network,user_type,user,tag_network,tag_type,tag,first_seen,last_seen\n\"";
    for begin in ["{\"table\":\"", header, "\"", "x"] {
        let endless = Cursor::new(begin.to_owned()).chain(Endless(b'a'));
        let failed = match Input::new("endless", None, Box::new(endless)) {
            Ok(input) => Importer::new(&store).read(input, &mut |_| {}).await,
            Err(error) => Err(error),
        };
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("more than 64 MiB"), "{error}");
    }
}

#[tokio::test]
async fn half_an_archive_is_not_taken_for_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let original = store(folder.path(), "a.db");
    let links = (0..50).map(|number| follow("a", &format!("u{number}")));
    commit(
        &original,
        Commit {
            links: links.collect(),
            ..at(1)
        },
    )
    .await;
    let tables = [ExportTable::UserRelations];
    for (compression, suffix) in [(Compression::Gzip, "gz"), (Compression::Zstd, "zst")] {
        let path = folder.path().join(format!("r.csv.{suffix}"));
        assert_eq!(Compression::of(&path), compression);
        let destination = Destination::File(path.clone());
        let style = CsvStyle::default();
        let writer = ExportWriter::new(
            destination,
            ExportFormat::Csv,
            compression,
            style,
            false,
            &tables,
        );
        let selection = Selection {
            tables: tables.to_vec(),
            since: None,
        };
        let counted = original.export(selection, Box::new(writer.unwrap())).await;
        assert_eq!(counted.unwrap()[&ExportTable::UserRelations], 50);
        let whole = std::fs::read(&path).unwrap();
        for (bytes, is_whole) in [(&whole[..], true), (&whole[..whole.len() / 2], false)] {
            let copy = store(folder.path(), &format!("{suffix}-{is_whole}.db"));
            let input = Input::new("packed", None, Box::new(Cursor::new(bytes.to_vec())));
            let read = match input {
                Ok(input) => Importer::new(&copy).read(input, &mut |_| {}).await,
                Err(error) => Err(error),
            };
            assert_eq!(read.is_ok(), is_whole, "{suffix}: {read:?}");
            let rows = copy.summary().await.unwrap().rows["user_relations"];
            assert_eq!(rows, if is_whole { 50 } else { 0 });
        }
    }
}

#[tokio::test]
async fn a_relation_is_where_the_newest_word_puts_it() {
    // (what comes in, in order; first seen, last seen, vanished) and the same backwards.
    let cases: [(&[String], [i64; 2], Option<i64>); 5] = [
        (&[present(1, 4), vanished(2, 3, 5)], [1, 4], Some(5)),
        (&[present(1, 6), vanished(0, 3, 5)], [0, 6], None),
        (&[vanished(1, 2, 3), vanished(0, 5, 9)], [0, 5], Some(9)),
        (
            &[vanished(1, 2, 3), present(3, 3), vanished(1, 2, 8)],
            [1, 3],
            Some(8),
        ),
        (&[present(2, 2), present(1, 7)], [1, 7], None),
    ];
    for (texts, [first, last], gone) in cases {
        let backwards: Vec<String> = texts.iter().rev().cloned().collect();
        for texts in [texts.to_vec(), backwards] {
            let folder = tempfile::tempdir().unwrap();
            let store = store(folder.path(), "a.db");
            for text in texts.iter().chain(&texts) {
                import(&store, text).await.unwrap();
            }
            let all = lines(&store).await;
            let found: Vec<&str> = all
                .lines()
                .filter(|line| line.contains("relations"))
                .collect();
            let expected = match gone {
                Some(at) => vanished(first, last, at),
                None => present(first, last),
            };
            assert_eq!(found, [expected.trim_end()], "{texts:?}");
        }
    }
}

#[tokio::test]
async fn what_another_crawl_saw_later_wins_and_what_it_overrules_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (mine, theirs) = (store(folder.path(), "m.db"), store(folder.path(), "t.db"));
    for (store, at_us, name) in [(&mine, 10, "mine"), (&theirs, 20, "theirs")] {
        let tell = Commit {
            objects: vec![user("a", name), user("only", name)],
            ..at(at_us)
        };
        commit(store, tell).await;
    }
    import(&mine, &lines(&theirs).await).await.unwrap();
    import(&theirs, &lines(&mine).await).await.unwrap();
    for store in [&mine, &theirs] {
        let text = lines(store).await;
        assert_eq!(
            text.matches("\"display_name\":\"theirs\"").count(),
            2,
            "{text}"
        );
        assert_eq!(text.matches("\"table\":\"versions\"").count(), 2, "{text}");
    }
}

#[tokio::test]
async fn numbers_of_calls_are_not_mixed_up_with_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (original, copy) = (store(folder.path(), "a.db"), store(folder.path(), "b.db"));
    let tell = Commit {
        objects: vec![user("a", "x")],
        ..at(1)
    };
    commit(&original, tell).await;
    import(&copy, &lines(&original).await).await.unwrap();
    let sql = "SELECT observed ->> '$.card[1]' < 0 FROM users".to_owned();
    let rows = copy.select_text(sql).await.unwrap();
    assert_eq!(rows, [[Some("1".to_owned())]]);
    assert_eq!(lines(&copy).await, lines(&original).await);
}

#[tokio::test]
async fn a_reply_that_is_a_post_is_not_doubled() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let comment = |kind: &str, observed: &str| {
        format!(
            "{{\"table\":\"comments\",\"network\":\"net\",\"type\":\"{kind}\",\"id\":\"r\",\
             \"text\":\"hi\",\"observed\":{observed}}}\n"
        )
    };
    let group = format!("{{\"c\":{{\"at\":\"{AT}\",\"log\":0,\"fields\":[\"text\"]}}}}");
    let report = import(&store, &comment("status", "{}")).await.unwrap();
    assert_eq!(report.skipped[&ExportTable::Comments], 1);
    import(&store, &comment("status", &group)).await.unwrap();
    assert_eq!(store.summary().await.unwrap().rows["comments"], 0);
    // A network that keeps comments apart has rows of its own.
    import(&store, &comment("comment", &group)).await.unwrap();
    let rows = store.summary().await.unwrap().rows;
    assert_eq!((rows["comments"], rows["statuses"]), (1, 0));
}

#[tokio::test]
async fn an_import_into_a_crawl_hands_depths_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let seed = Commit {
        discoveries: vec![Discovery {
            subject: named(&identity("user", Some("a"))),
            depth: 0,
        }],
        ..at(1)
    };
    commit(&store, seed).await;
    import(&store, &present(1, 2)).await.unwrap();
    // Who is in reach is settled by the next commit that has rules; until then it is remembered.
    let waiting = store
        .select_text("SELECT list FROM relax ORDER BY list".to_owned())
        .await
        .unwrap();
    assert!(!waiting.is_empty(), "nobody remembers to hand depths on");
}

#[tokio::test]
async fn an_answer_of_our_own_ends_an_imported_spell() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let seed = Commit {
        objects: vec![user("a", "x")],
        discoveries: vec![Discovery {
            subject: Reference::Object(0),
            depth: 0,
        }],
        ..at(1)
    };
    let key = commit(&store, seed).await[0];
    let outcome = Outcome {
        subject: key,
        query: "profile".into(),
        code: OutcomeCode::Ok,
        reason: String::new(),
    };
    let answered = Commit {
        outcomes: vec![outcome],
        ..at(2_000_000_000_000_000)
    };
    commit(&store, answered).await;
    let spell = format!(
        "{{\"table\":\"invalid_users\",\"network\":\"net\",\"type\":\"user\",\"id\":\"a\",\
         \"reason\":\"gone\",\"from\":\"{AT}\"}}\n"
    );
    for _ in 0..2 {
        import(&store, &spell).await.unwrap();
        let sql = "SELECT until_us FROM invalid_users".to_owned();
        let rows = store.select_text(sql).await.unwrap();
        assert_eq!(rows, [[Some("2000000000000000".to_owned())]]);
    }
}

#[tokio::test]
async fn tables_of_the_crawl_are_read_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), "a.db");
    let text = "{\"table\":\"runs\",\"id\":1}\n{\"table\":\"query_log\",\"id\":1}\n";
    let report = import(&store, text).await.unwrap();
    assert_eq!(report.skipped[&ExportTable::Runs], 1);
    assert!(report.rows.is_empty());
    assert_eq!(import(&store, "").await.unwrap(), ImportReport::default());
}

#[tokio::test]
async fn a_part_of_the_tables_gives_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (original, copy) = (store(folder.path(), "a.db"), store(folder.path(), "b.db"));
    let tell = Commit {
        objects: vec![user("z", "x"), user("b", "y")],
        links: vec![follow("q", "z"), follow("b", "z")],
        ..at(1)
    };
    commit(&original, tell).await;
    let before = part(&original).await;
    import(&copy, &before.join("\n")).await.unwrap();
    assert_eq!(part(&copy).await, before);
}

async fn part(store: &SqliteStore) -> Vec<String> {
    let selection = Selection {
        tables: vec![ExportTable::UserRelations, ExportTable::Users],
        since: None,
    };
    let text = exported(store, selection, ExportFormat::Jsonl, CsvStyle::default()).await;
    let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_has_its_name_only_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let writer = |force| {
        ExportWriter::new(
            Destination::File(path.clone()),
            ExportFormat::Jsonl,
            Compression::None,
            CsvStyle::default(),
            force,
            &[ExportTable::Tags],
        )
    };
    let mut given_up = writer(false).unwrap();
    given_up.begin(ExportTable::Tags).unwrap();
    assert_eq!(names_in(folder.path()), ["t.jsonl.partial"]);
    let busy = writer(false).unwrap_err().to_string();
    assert!(busy.contains("another export"), "{busy}");
    drop(given_up);
    assert!(names_in(folder.path()).is_empty());
    writer(false).unwrap().finish().unwrap();
    assert_eq!(names_in(folder.path()), ["t.jsonl"]);
    let exists = writer(false).unwrap_err().to_string();
    assert!(exists.contains("--force"), "{exists}");
    // Until it is replaced, the old one stays.
    let mut replacing = writer(true).unwrap();
    assert_eq!(names_in(folder.path()), ["t.jsonl", "t.jsonl.partial"]);
    replacing.finish().unwrap();
    assert_eq!(names_in(folder.path()), ["t.jsonl"]);
}

#[test]
fn several_tables_need_a_folder_for_csv() {
    let folder = tempfile::tempdir().unwrap();
    let tables = [ExportTable::Tags, ExportTable::Users];
    let writer = |destination| {
        let (format, style) = (ExportFormat::Csv, CsvStyle::default());
        ExportWriter::new(
            destination,
            format,
            Compression::Gzip,
            style,
            false,
            &tables,
        )
    };
    let file = Destination::File(folder.path().join("x.csv"));
    let refused = writer(file).unwrap_err().to_string();
    assert!(refused.contains("one table"), "{refused}");
    let inner = folder.path().join("a/b");
    let mut written = writer(Destination::Folder(inner.clone())).unwrap();
    for table in tables {
        written.begin(table).unwrap();
    }
    assert_eq!(
        names_in(&inner),
        ["tags.csv.gz.partial", "users.csv.gz.partial"],
        "all get their names together"
    );
    written.finish().unwrap();
    assert_eq!(names_in(&inner), ["tags.csv.gz", "users.csv.gz"]);
}
