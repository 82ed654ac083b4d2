//! `docs/tutorial-network.md`, done as it says: its network is served on loopback, the definition is
//! put together from its blocks, every command is run, and what it shows is compared.

mod perch;

use crate::counterpart::{Counterpart, reply};
use crate::support::{Folder, open, text};
use perch::Perch;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

const TUTORIAL: &str = include_str!("../../../../docs/tutorial-network.md");
/// Where the tutorial says that its network is.
const TOLD_ADDRESS: &str = "http://127.0.0.1:8000";
const DEFINITION: &str = "perch.toml";

/// A block of the tutorial: its language, its line and what stands in it.
struct Block {
    language: String,
    line: usize,
    content: String,
}

fn blocks(tutorial: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    for (place, line) in tutorial.lines().enumerate() {
        match (line.strip_prefix("```"), is_inside) {
            (Some(language), false) => {
                is_inside = true;
                blocks.push(Block {
                    language: language.to_owned(),
                    line: place + 1,
                    content: String::new(),
                });
            }
            (Some(rest), true) => {
                assert_eq!(rest, "", "line {}: a block within a block", place + 1);
                is_inside = false;
            }
            (None, true) => {
                let block = blocks.last_mut().expect("an open block");
                block.content.push_str(line);
                block.content.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!is_inside, "the last block is not closed");
    blocks
}

#[test]
fn every_step_of_the_tutorial_does_what_it_says() {
    let folder = Folder::new();
    let perch = Perch::default();
    let server = Counterpart::start(move |call, stream| {
        let (headers, body) = perch.answer(call);
        // Whatever happens, Perch says 200.
        reply(stream, "200 OK", &headers, body.as_bytes())
    });
    let tutorial = TUTORIAL.replace(TOLD_ADDRESS, &server.address);
    let mut reader = Reader {
        folder: &folder,
        shown: String::new(),
        commands: 0,
        compared: 0,
    };
    let blocks = blocks(&tutorial);
    for block in &blocks {
        reader.follow(block);
    }
    // A tutorial whose blocks are not found would pass as well.
    assert!(blocks.len() >= 50 && reader.commands >= 30 && reader.compared >= 20);
    // All of it fits into one window, so that nobody has to wait.
    assert!(server.calls().len() < perch::LIMIT);
}

/// Somebody who does what the tutorial says.
struct Reader<'a> {
    folder: &'a Folder,
    /// What the last command printed.
    shown: String,
    commands: usize,
    compared: usize,
}

impl Reader<'_> {
    fn follow(&mut self, block: &Block) {
        let place = format!("docs/tutorial-network.md:{}", block.line);
        match block.language.as_str() {
            "toml" => self.append(&block.content),
            "diff" => self.mend(&block.content, &place),
            "sh" => {
                for command in block.content.lines() {
                    self.run(command, &place);
                }
            }
            "text" => self.compare(&block.content, &place),
            "json" => {
                let told: Value = serde_json::from_str(&block.content).expect(&place);
                let shown: Value = serde_json::from_str(&self.shown).expect(&place);
                assert_eq!(shown, told, "{place}");
                self.compared += 1;
            }
            other => panic!("{place}: nobody checks a block of {other:?}"),
        }
    }

    fn definition(&self) -> String {
        std::fs::read_to_string(self.folder.path(DEFINITION)).unwrap_or_default()
    }

    fn write(&self, definition: &str) {
        std::fs::write(self.folder.path(DEFINITION), definition).expect("a file");
    }

    fn append(&self, more: &str) {
        self.write(&(self.definition() + more));
    }

    /// Replaces the lines with `-` by those with `+`.
    fn mend(&self, change: &str, place: &str) {
        let lines = |sign: char| -> String {
            let marked = change.lines().filter_map(|line| line.strip_prefix(sign));
            marked.flat_map(|line| [line, "\n"]).collect()
        };
        let (old, new) = (lines('-'), lines('+'));
        let definition = self.definition();
        assert_eq!(definition.matches(&old).count(), 1, "{place}: {old}");
        self.write(&definition.replace(&old, &new));
    }

    fn run(&mut self, command: &str, place: &str) {
        let words = words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.commands += 1;
        self.shown = match words.as_slice() {
            ["kittiwake", arguments @ ..] => self.kittiwake(arguments, place),
            ["sqlite3", file, sql] => select(&open(&self.folder.path(file)), sql),
            ["curl", "-s", url] => get(url).1,
            ["curl", "-si", url] => {
                let (head, body) = get(url);
                format!("{head}\n\n{body}")
            }
            _ => panic!("{place}: nobody runs {command:?}"),
        };
    }

    /// Runs the binary. It has to succeed, except where the tutorial shows what it complains of.
    fn kittiwake(&self, arguments: &[&str], place: &str) -> String {
        let output = self.folder.run(arguments);
        let (result, complaint) = (text(&output.stdout), text(&output.stderr));
        match output.status.code() {
            Some(0) => result,
            Some(2) if arguments.starts_with(&["network", "check"]) => complaint,
            // Something does not fit the server.
            Some(1) if arguments.contains(&"--against") => result,
            code => panic!("{place}: {arguments:?} ended with {code:?}: {complaint}"),
        }
    }

    /// Compares line by line; `…` at the end of a line stands for anything.
    fn compare(&mut self, told: &str, place: &str) {
        let shown: Vec<&str> = self.shown.trim_end().lines().map(str::trim_end).collect();
        let told: Vec<&str> = told.trim_end().lines().collect();
        let fits = |(shown, told): (&&str, &&str)| match told.strip_suffix('…') {
            Some(start) => shown.starts_with(start),
            None => shown == told,
        };
        let is_same = shown.len() == told.len() && shown.iter().zip(&told).all(fits);
        assert!(is_same, "{place}\n told: {told:#?}\nshown: {shown:#?}");
        self.compared += 1;
    }
}

/// The words of a command; quotes keep words together.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in command.chars() {
        let word = words.last_mut().expect("a word");
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, ' ') => words.push(String::new()),
            _ => word.push(character),
        }
    }
    assert_eq!(quote, None, "{command}");
    words
}

/// Rows as `sqlite3` prints them.
fn select(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(sql).expect(sql);
    let columns = statement.column_count();
    let mut rows = statement.query([]).expect(sql);
    let mut shown = String::new();
    while let Some(row) = rows.next().expect(sql) {
        let value = |column| match row.get_ref(column).expect(sql) {
            ValueRef::Null => String::new(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(text) | ValueRef::Blob(text) => {
                String::from_utf8_lossy(text).into_owned()
            }
        };
        let values: Vec<String> = (0..columns).map(value).collect();
        shown.push_str(&values.join("|"));
        shown.push('\n');
    }
    shown
}

/// Head and body of an answer, as they came.
fn get(url: &str) -> (String, String) {
    let (host, target) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .expect(url);
    let mut stream = TcpStream::connect(host).expect(url);
    let request = format!("GET /{target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect(url);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect(url);
    let (head, body) = answer.split_once("\r\n\r\n").expect(url);
    (head.replace("\r\n", "\n"), body.to_owned())
}
