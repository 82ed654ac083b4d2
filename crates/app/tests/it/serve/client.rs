//! A client that says exactly what it is told to, also what no browser would.

use crate::support::Running;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_mins(2);

/// A process that serves, and what it said.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) port: u16,
    said: Arc<Mutex<String>>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .next()
    }
}

impl Server {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stderr = child.stderr.take().expect("standard error is piped");
        let running = Running::of(child);
        let said = Arc::new(Mutex::new(String::new()));
        let hears = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut heard = hears.lock().expect("nobody panics here");
                heard.push_str(&line);
                heard.push('\n');
            }
        });
        let started = Instant::now();
        loop {
            let heard = said.lock().expect("nobody panics here").clone();
            let place = heard.split("http://127.0.0.1:").nth(1);
            let port = place.filter(|_| heard.contains("the dashboard is at"));
            let port = port.and_then(|rest| rest.split('/').next()?.parse().ok());
            if let Some(port) = port {
                let server = Self {
                    running,
                    port,
                    said,
                };
                server.wait_until_it_answers();
                return server;
            }
            assert!(started.elapsed() < PATIENCE, "it does not begin: {heard}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_until_it_answers(&self) {
        let started = Instant::now();
        while self.get("/healthz").status != 200 {
            assert!(started.elapsed() < PATIENCE, "it does not answer");
        }
    }

    /// What it said to standard error so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().expect("nobody panics here").clone()
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(
            "POST",
            path,
            &[("Content-Type", "application/json")],
            &body.to_string(),
        )
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.ask(
            "PUT",
            path,
            &[("Content-Type", "application/json")],
            &body.to_string(),
        )
    }

    /// One request as it is said. A `Host` among the headers takes the place of the right one.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if method != "GET" {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        request.push_str(body);
        self.say(request.as_bytes())
    }

    /// Bytes as they are; what came back until the other side closed.
    pub(crate) fn say(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // It may answer before it has heard all.
        let _ = stream.write_all(bytes);
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        let heard = String::from_utf8_lossy(&heard).into_owned();
        let (head, body) = heard.split_once("\r\n\r\n").unwrap_or((&heard, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Answer {
            status: status.unwrap_or_default(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// A stream of events. By HTTP/1.0 it comes as it is, without lengths in between.
    pub(crate) fn events(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        let mut stream = self.connect();
        let mut request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n", self.port);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).expect("it hears");
        Events(BufReader::new(stream))
    }
}

/// Events as they come.
pub(crate) struct Events(BufReader<TcpStream>);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            let line = line.trim_end_matches(['\r', '\n']);
            if let Some((name, value)) = line.split_once(": ") {
                match name {
                    "id" => value.clone_into(&mut event.id),
                    "event" => value.clone_into(&mut event.name),
                    "data" => value.clone_into(&mut event.data),
                    _ => {}
                }
            }
            if line.is_empty() && !event.name.is_empty() {
                return Some(event);
            }
        }
    }
}

pub(crate) fn basic(role: &str, password: &str) -> String {
    use base64::Engine as _;
    let pair = format!("{role}:{password}");
    format!(
        "Basic {}",
        base64::engine::general_purpose::STANDARD.encode(pair)
    )
}
