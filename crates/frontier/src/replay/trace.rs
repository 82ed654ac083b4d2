//! Reading a trace: who posted when.
//!
//! CSV with a header `user,unix_seconds`, plain or packed with zstd; further columns may say how far
//! a post has spread (`spread`) and to which facet it belongs (`facet`). Whatever is wrong is told
//! with its line; nothing that a file holds can make reading panic or take more than its bounds.

use kittiwake_model::WorldTime;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

/// A line is never longer than this.
const LINE_BYTES_MAX: u64 = 4_096;
/// Posts and users that a trace may have.
const POSTS_MAX: usize = 200_000_000;
const USERS_MAX: usize = 50_000_000;
/// Years 0001 to 9999: whatever is outside was not meant to be seconds.
const SECONDS_MIN: f64 = -62_135_596_800.0;
const SECONDS_MAX: f64 = 253_402_207_200.0;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The facet of a trace that names none.
const POSTS: &str = "posts";

/// Why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("the trace is empty; it needs a header user,unix_seconds and a line for every post")]
    Empty,
    #[error("the trace has a header but no posts")]
    NoPosts,
    #[error("line {line} of the trace is no CSV with user,unix_seconds: {what}")]
    Line { line: u64, what: String },
    #[error("the trace ends in the middle or cannot be unpacked: {0}")]
    Unreadable(#[source] std::io::Error),
    #[error("the trace has more than {0}; cut it")]
    TooLarge(&'static str),
}

/// One user's posts of one facet, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub user: u32,
    pub facet: u16,
    pub posts: Vec<WorldTime>,
    /// How far each of them has spread; empty if the trace does not say.
    pub spreads: Vec<u32>,
}

/// Who posted when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    pub users: Vec<String>,
    pub facets: Vec<String>,
    pub subjects: Vec<Subject>,
    pub start: WorldTime,
    pub end: WorldTime,
}

impl Trace {
    /// Reads a trace, packed or not.
    pub fn read(source: impl Read) -> Result<Self, TraceError> {
        let mut source = BufReader::with_capacity(1 << 16, source);
        let begins = source.fill_buf().map_err(TraceError::Unreadable)?;
        if begins.starts_with(&ZSTD_MAGIC) {
            let unpacked = zstd::stream::read::Decoder::with_buffer(source);
            let unpacked = unpacked.map_err(TraceError::Unreadable)?;
            return read_lines(BufReader::with_capacity(1 << 16, unpacked));
        }
        read_lines(source)
    }

    /// A trace of one facet from times by user.
    pub fn of(posts: impl IntoIterator<Item = (String, WorldTime)>) -> Result<Self, TraceError> {
        let mut builder = Builder::default();
        for (user, at) in posts {
            builder.add(&user, at, None, POSTS)?;
        }
        builder.finish()
    }

    pub fn posts(&self) -> usize {
        self.subjects
            .iter()
            .map(|subject| subject.posts.len())
            .sum()
    }

    pub fn has_spreads(&self) -> bool {
        self.subjects
            .iter()
            .any(|subject| !subject.spreads.is_empty())
    }

    pub fn days(&self) -> f64 {
        crate::policy::days_between(self.start, self.end)
    }
}

/// Where the columns are.
#[derive(Debug, Clone, Copy)]
struct Columns {
    user: usize,
    seconds: usize,
    spread: Option<usize>,
    facet: Option<usize>,
}

impl Columns {
    /// From a header, or from a first line that is data already.
    fn of(first: &[String]) -> Result<(Self, bool), String> {
        let place = |names: &[&str]| {
            let mut fields = first.iter();
            fields.position(|field| names.iter().any(|name| field.eq_ignore_ascii_case(name)))
        };
        let spread = place(&["spread", "reposts"]);
        let facet = place(&["facet"]);
        let named = (
            place(&["user", "user_id", "author"]),
            place(&["unix_seconds"]),
        );
        if let (Some(user), Some(seconds)) = named {
            let columns = Self {
                user,
                seconds,
                spread,
                facet,
            };
            return Ok((columns, true));
        }
        if first.len() >= 2 && seconds_of(&first[1]).is_ok() {
            let columns = Self {
                user: 0,
                seconds: 1,
                spread: None,
                facet: None,
            };
            return Ok((columns, false));
        }
        Err("it names no columns user and unix_seconds".to_owned())
    }
}

fn read_lines(mut source: impl BufRead) -> Result<Trace, TraceError> {
    let mut builder = Builder::default();
    let mut columns: Option<Columns> = None;
    let (mut text, mut line) = (Vec::new(), 0);
    loop {
        line += 1;
        text.clear();
        let mut bounded = (&mut source).take(LINE_BYTES_MAX);
        let length = bounded
            .read_until(b'\n', &mut text)
            .map_err(TraceError::Unreadable)?;
        if length == 0 {
            break;
        }
        let wrong = |what: String| TraceError::Line { line, what };
        if length as u64 == LINE_BYTES_MAX {
            return Err(wrong(format!("it is longer than {LINE_BYTES_MAX} bytes")));
        }
        let text = std::str::from_utf8(&text).map_err(|_| wrong("it is no UTF-8".to_owned()))?;
        let text = text
            .trim_start_matches('\u{feff}')
            .trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            continue;
        }
        let fields = split(text).map_err(wrong)?;
        let found = if let Some(columns) = columns {
            columns
        } else {
            let (found, is_header) = Columns::of(&fields).map_err(wrong)?;
            columns = Some(found);
            if is_header {
                continue;
            }
            found
        };
        builder
            .add_line(found, &fields)
            .map_err(|error| match error {
                Wrong::Line(what) => wrong(what),
                Wrong::Trace(error) => error,
            })?;
    }
    if columns.is_none() {
        return Err(TraceError::Empty);
    }
    builder.finish()
}

/// The fields of a line; one in quotes may hold commas, and quotes twice over.
fn split(text: &str) -> Result<Vec<String>, String> {
    if !text.contains('"') {
        return Ok(text
            .split(',')
            .map(|field| field.trim().to_owned())
            .collect());
    }
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let mut push = |letter| {
            if let Some(field) = fields.last_mut() {
                field.push(letter);
            }
        };
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            letter => push(letter),
        }
    }
    if is_quoted {
        return Err("a quote does not end".to_owned());
    }
    Ok(fields)
}

fn seconds_of(text: &str) -> Result<WorldTime, String> {
    let seconds: f64 = text
        .trim()
        .parse()
        .map_err(|_| format!("{text:?} is no number of seconds"))?;
    if !(SECONDS_MIN..=SECONDS_MAX).contains(&seconds) {
        return Err(format!(
            "{text} seconds are outside the years 1 to 9999; are they milliseconds?"
        ));
    }
    Ok(WorldTime((seconds * 1e6).round() as i64))
}

enum Wrong {
    Line(String),
    Trace(TraceError),
}

/// Times with how far each post has spread.
type Posts = Vec<(WorldTime, u32)>;

#[derive(Debug, Default)]
struct Builder {
    users: Vec<String>,
    user_numbers: HashMap<String, u32>,
    facets: Vec<String>,
    subjects: Vec<(u32, u16, Posts)>,
    subject_numbers: HashMap<(u32, u16), usize>,
    posts: usize,
    has_spreads: bool,
}

impl Builder {
    fn add_line(&mut self, columns: Columns, fields: &[String]) -> Result<(), Wrong> {
        let field = |place: usize| {
            let field = fields.get(place).map(String::as_str);
            field.ok_or_else(|| Wrong::Line(format!("it has only {} fields", fields.len())))
        };
        let user = field(columns.user)?;
        if user.is_empty() {
            return Err(Wrong::Line("it names no user".to_owned()));
        }
        let at = seconds_of(field(columns.seconds)?).map_err(Wrong::Line)?;
        let spread = match columns.spread {
            Some(place) => {
                let text = field(place)?;
                let spread = text.trim().parse::<u32>();
                let wrong = |_| Wrong::Line(format!("{text:?} is no count"));
                Some(spread.map_err(wrong)?)
            }
            None => None,
        };
        let facet = match columns.facet {
            Some(place) => field(place)?,
            None => POSTS,
        };
        self.add(user, at, spread, facet).map_err(Wrong::Trace)
    }

    fn add(
        &mut self,
        user: &str,
        at: WorldTime,
        spread: Option<u32>,
        facet: &str,
    ) -> Result<(), TraceError> {
        if self.posts >= POSTS_MAX {
            return Err(TraceError::TooLarge("200 million posts"));
        }
        let user = self.user(user)?;
        let facet = self.facet(facet)?;
        let subjects = &mut self.subjects;
        let number = *self
            .subject_numbers
            .entry((user, facet))
            .or_insert_with(|| {
                subjects.push((user, facet, Vec::new()));
                subjects.len() - 1
            });
        self.subjects[number].2.push((at, spread.unwrap_or(0)));
        self.has_spreads |= spread.is_some();
        self.posts += 1;
        Ok(())
    }

    fn user(&mut self, name: &str) -> Result<u32, TraceError> {
        if let Some(number) = self.user_numbers.get(name) {
            return Ok(*number);
        }
        if self.users.len() >= USERS_MAX {
            return Err(TraceError::TooLarge("50 million users"));
        }
        let number = self.users.len() as u32;
        self.users.push(name.to_owned());
        self.user_numbers.insert(name.to_owned(), number);
        Ok(number)
    }

    fn facet(&mut self, name: &str) -> Result<u16, TraceError> {
        const FACETS_MAX: usize = 16;
        if let Some(number) = self.facets.iter().position(|facet| facet == name) {
            return Ok(number as u16);
        }
        if self.facets.len() >= FACETS_MAX {
            return Err(TraceError::TooLarge("16 facets"));
        }
        self.facets.push(name.to_owned());
        Ok(self.facets.len() as u16 - 1)
    }

    fn finish(self) -> Result<Trace, TraceError> {
        let times = || self.subjects.iter().flat_map(|subject| &subject.2);
        let start = times().map(|(at, _)| *at).min();
        let end = times().map(|(at, _)| *at).max();
        let (Some(start), Some(end)) = (start, end) else {
            return Err(TraceError::NoPosts);
        };
        let has_spreads = self.has_spreads;
        let subjects = self.subjects.into_iter().map(|(user, facet, mut posts)| {
            posts.sort_unstable();
            Subject {
                user,
                facet,
                spreads: if has_spreads {
                    posts.iter().map(|(_, spread)| *spread).collect()
                } else {
                    Vec::new()
                },
                posts: posts.into_iter().map(|(at, _)| at).collect(),
            }
        });
        Ok(Trace {
            users: self.users,
            facets: self.facets,
            subjects: subjects.collect(),
            start,
            end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace, TraceError> {
        Trace::read(text.as_bytes())
    }

    fn told(text: &[u8]) -> String {
        Trace::read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_trace_is_read_in_any_order_and_before_1970() {
        let trace = read("user,unix_seconds\nb,30\na,-20\nb,10\n\"x, \"\"y\"\"\",10.5\n").unwrap();
        assert_eq!(trace.users, ["b", "a", "x, \"y\""]);
        let times: Vec<Vec<i64>> = trace
            .subjects
            .iter()
            .map(|subject| {
                subject
                    .posts
                    .iter()
                    .map(|at| at.micros() / 100_000)
                    .collect()
            })
            .collect();
        assert_eq!(times, [vec![100, 300], vec![-200], vec![105]]);
        assert_eq!(
            (trace.start.micros(), trace.end.micros()),
            (-20_000_000, 30_000_000)
        );
        assert_eq!(read("a,5\nb,6").unwrap().posts(), 2);
    }

    #[test]
    fn columns_are_found_by_name() {
        let trace = read("facet,spread,unix_seconds,user\nposts,7,5,a\ncounts,1,6,a").unwrap();
        assert_eq!(trace.facets, ["posts", "counts"]);
        assert_eq!((trace.subjects.len(), trace.users.len()), (2, 1));
        assert_eq!(trace.subjects[0].spreads, [7]);
    }

    #[test]
    fn whatever_is_no_trace_is_told_with_its_line() {
        assert!(told(b"").contains("empty"));
        assert!(told(b"\n\n").contains("empty"));
        assert!(told(b"user,unix_seconds\n").contains("no posts"));
        assert!(told(b"user,unix_seconds\na,1\nb").contains("line 3"));
        assert!(told(b"user,unix_seconds\n,1\n").contains("no user"));
        assert!(told(b"user,unix_seconds\na,soon\n").contains("\"soon\""));
        assert!(told(b"user,unix_seconds\na,NaN\n").contains("line 2"));
        assert!(told(b"user,unix_seconds\na,1530403398000\n").contains("milliseconds"));
        assert!(told(b"user,unix_seconds\n\"a,1\n").contains("quote"));
        assert!(told(b"name,when\na,1\n").contains("line 1"));
        assert!(told(b"\x89PNG\r\n\x1a\n\0\0").contains("line 1"));
        assert!(told(&vec![b'x'; 100_000]).contains("longer than"));
    }

    #[test]
    fn a_truncated_archive_is_an_error_and_a_whole_one_is_read() {
        let text: String = std::iter::once("user,unix_seconds\n".to_owned())
            .chain((0..5_000).map(|post| format!("{},{}\n", post % 7, post * 911)))
            .collect();
        let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
        assert_eq!(Trace::read(&packed[..]).unwrap(), read(&text).unwrap());
        for length in [5, packed.len() / 2, packed.len() - 1] {
            assert!(
                told(&packed[..length]).contains("ends in the middle"),
                "{length}"
            );
        }
        let mut broken = packed;
        broken[20] ^= 0xff;
        assert!(Trace::read(&broken[..]).is_err());
    }
}
