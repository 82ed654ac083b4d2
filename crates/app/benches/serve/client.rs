//! Processes that are started and ended, and what is asked of them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A part of this benchmark in a process of its own. It ends when its standard input is closed.
pub(crate) struct Part {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Part {
    /// Starts it, and waits for its first line.
    pub(crate) fn start(role: &str, words: &[&str]) -> (Self, String) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--role", role])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut part = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        let line = part.line();
        (part, line)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Ends it; gives its last line.
    pub(crate) fn end(mut self) -> String {
        drop(self.input.take());
        let line = self.line();
        self.child.wait().unwrap();
        line
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request on a connection of its own: the status and the body.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.get(9..12).and_then(|code| code.parse().ok());
    (status.unwrap_or(0), body.to_owned())
}

/// A binary that shows a crawl, and where.
pub(crate) struct Shown {
    child: Child,
    pub(crate) address: String,
}

impl Shown {
    /// Starts a command that serves, and waits until it does.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("it says where it is").unwrap();
            if let Some((_, rest)) = line.split_once("the dashboard is at http://") {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        // What it says later has to go somewhere.
        std::thread::spawn(move || lines.for_each(drop));
        while get(&address, "/healthz").0 != 200 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Self { child, address }
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        crate::measure::cpu_seconds_of(&self.child)
    }

    /// A counter of `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let (_, text) = get(&self.address, "/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok())
            .unwrap_or(0.0)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
