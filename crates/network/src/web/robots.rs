//! robots.txt, as RFC 9309 has it: what a host asks programs not to fetch. Pure.
//!
//! The groups of our own name count, or else those of `*`; of their rules the one with the longest path
//! decides, and `allow` where two are as long.

use crate::network::Network;

/// Programs are told apart by this name.
const PRODUCT: &str = "kittiwake";
/// No more of a file is read: the least that RFC 9309 asks for.
pub const ROBOTS_BYTES_MAX: usize = 500 << 10;
/// Rules that are kept; a file of that size has not many more that mean anything.
const RULES_MAX: usize = 20_000;
/// The longest path that is compared. Whoever has longer ones forbids what begins like them.
const PATH_BYTES_MAX: usize = 2_048;
/// The longest pause between two calls that is kept.
const DELAY_S_MAX: f64 = 3_600.0;

/// How hosts are asked for the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RobotsRule {
    /// How long an answer is believed at most.
    pub again_after_us: i64,
}

impl RobotsRule {
    /// How long an answer is believed. A host may want it to be asked for again sooner, but not all the
    /// time: many forbid keeping anything without meaning this file.
    pub fn believed_us(&self, cache_control: Option<&str>) -> i64 {
        const LEAST_US: i64 = 300_000_000;
        let wanted = cache_control.into_iter().flat_map(|it| it.split(','));
        let wanted_us = wanted.map(str::trim).find_map(|word| {
            let word = word.to_ascii_lowercase();
            if matches!(word.as_str(), "no-cache" | "no-store") {
                return Some(0);
            }
            let seconds: i64 = word
                .strip_prefix("max-age=")?
                .trim_matches('"')
                .parse()
                .ok()?;
            Some(seconds.max(0).saturating_mul(1_000_000))
        });
        let wanted_us = wanted_us.unwrap_or(self.again_after_us);
        wanted_us.max(LEAST_US).min(self.again_after_us)
    }
}

impl Network {
    /// Whether hosts are asked for robots.txt, and how.
    pub const fn robots_txt(&self) -> Option<RobotsRule> {
        self.robots_txt
    }
}

/// What a host asks of us.
#[derive(Debug, Clone, PartialEq)]
pub struct Robots {
    rules: Vec<Rule>,
    /// Seconds between two calls.
    pub delay_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    is_allowed: bool,
    /// The parts of the path between `*`, percent-encoded in one way.
    parts: Vec<String>,
    /// Whether the path ends there.
    is_whole: bool,
    /// What the rule weighs: the length of its path.
    length: usize,
}

/// One line that means something.
enum Line<'t> {
    Agent(&'t str),
    Rule(Rule),
    Delay(f64),
}

impl Robots {
    /// A host that asks for nothing.
    pub const fn free() -> Self {
        Self {
            rules: Vec::new(),
            delay_s: None,
        }
    }

    /// Reads a file. Never fails: what is no rule is none.
    pub fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.get(..ROBOTS_BYTES_MAX).map_or(bytes, whole_lines);
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_start_matches('\u{feff}');
        let (mut own, mut others) = (Self::free(), Self::free());
        let mut is_named = false;
        // Whom the lines concern: a group begins with one or more names.
        let (mut is_own, mut is_others, mut is_naming) = (false, false, false);
        for line in text.split(['\n', '\r']) {
            let Some(line) = Line::of(line) else { continue };
            if let Line::Agent(name) = line {
                if !is_naming {
                    (is_own, is_others) = (false, false);
                }
                is_naming = true;
                is_own |= is_ours(name);
                is_others |= name == "*";
                is_named |= is_own;
                continue;
            }
            is_naming = false;
            for (concerns, group) in [(is_own, &mut own), (is_others, &mut others)] {
                if concerns {
                    group.add(&line);
                }
            }
        }
        if is_named { own } else { others }
    }

    fn add(&mut self, line: &Line<'_>) {
        match line {
            Line::Rule(rule) if self.rules.len() < RULES_MAX => self.rules.push(rule.clone()),
            Line::Delay(seconds) => {
                self.delay_s = Some(self.delay_s.map_or(*seconds, |known| known.max(*seconds)));
            }
            Line::Rule(_) | Line::Agent(_) => {}
        }
    }

    /// Whether a path, with what follows `?`, may be fetched.
    pub fn allows(&self, path: &str) -> bool {
        let path = encoded(path);
        if path == "/robots.txt" {
            return true;
        }
        let fitting = self.rules.iter().filter(|rule| rule.fits(&path));
        let strongest = fitting.max_by_key(|rule| (rule.length, rule.is_allowed));
        strongest.is_none_or(|rule| rule.is_allowed)
    }
}

/// The beginning of a file without the line that it was cut off in: half a path is another.
fn whole_lines(beginning: &[u8]) -> &[u8] {
    let end = beginning.iter().rposition(|it| matches!(it, b'\n' | b'\r'));
    &beginning[..end.unwrap_or(0)]
}

/// Whether a name is ours: only its letters count, `Kittiwake/1.0` too.
fn is_ours(name: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_alphabetic() || matches!(it, '_' | '-');
    let end = name.find(|it| !is_letter(it)).unwrap_or(name.len());
    name[..end].eq_ignore_ascii_case(PRODUCT)
}

impl<'t> Line<'t> {
    fn of(line: &'t str) -> Option<Self> {
        let line = line.split('#').next().unwrap_or_default();
        let (key, value) = line.split_once(':')?;
        let (key, value) = (key.trim(), value.trim());
        let is = |name: &str| key.eq_ignore_ascii_case(name);
        if is("user-agent") {
            return Some(Self::Agent(value));
        }
        if is("allow") || is("disallow") {
            return Rule::of(value, is("allow")).map(Self::Rule);
        }
        if is("crawl-delay") {
            let seconds: f64 = value.parse().ok()?;
            let is_sound = seconds.is_finite() && seconds > 0.0;
            return is_sound.then(|| Self::Delay(seconds.min(DELAY_S_MAX)));
        }
        None
    }
}

impl Rule {
    /// An empty path forbids nothing.
    fn of(path: &str, is_allowed: bool) -> Option<Self> {
        if !path.starts_with(['/', '*']) {
            return None;
        }
        let is_cut = path.len() > PATH_BYTES_MAX;
        let path = &path[..path.floor_char_boundary(PATH_BYTES_MAX)];
        let (path, is_whole) = match path.strip_suffix('$') {
            Some(path) if !is_cut => (path, true),
            _ => (path, false),
        };
        let parts: Vec<String> = path.split('*').map(encoded).collect();
        Some(Self {
            is_allowed,
            length: parts.iter().map(String::len).sum::<usize>() + parts.len() - 1,
            parts,
            is_whole,
        })
    }

    /// The first place at which each part stands is as good as any other, so that nothing is tried
    /// twice.
    fn fits(&self, path: &str) -> bool {
        let Some((first, later)) = self.parts.split_first() else {
            return false;
        };
        let Some(mut rest) = path.strip_prefix(first.as_str()) else {
            return false;
        };
        let Some((last, between)) = later.split_last() else {
            return !self.is_whole || rest.is_empty();
        };
        for part in between {
            let Some(place) = rest.find(part.as_str()) else {
                return false;
            };
            rest = &rest[place + part.len()..];
        }
        if self.is_whole {
            rest.ends_with(last.as_str())
        } else {
            rest.contains(last.as_str())
        }
    }
}

/// A path with everything percent-encoded that is no plain character, and nothing that is one.
fn encoded(path: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let bytes = path.as_bytes();
    let mut out = String::with_capacity(path.len());
    let mut place = 0;
    while place < bytes.len() {
        let hex = |at: usize| bytes.get(at).and_then(|it| char::from(*it).to_digit(16));
        let (byte, is_encoded) = match (bytes[place], hex(place + 1), hex(place + 2)) {
            (b'%', Some(high), Some(low)) => {
                place += 2;
                ((high * 16 + low) as u8, true)
            }
            (byte, _, _) => (byte, false),
        };
        place += 1;
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        // A sign that encodes nothing is encoded itself: it would encode what decoding puts after it.
        let is_kept = !is_encoded && byte.is_ascii_graphic() && byte != b'%';
        if is_plain || is_kept {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn robots(text: &str) -> Robots {
        Robots::parse(text.as_bytes())
    }

    fn allows(rules: &str, path: &str) -> bool {
        robots(&format!("User-agent: *\n{rules}")).allows(path)
    }

    #[test]
    fn the_longest_rule_decides() {
        for (rules, path, allowed) in [
            ("Disallow: /", "/a", false),
            ("Disallow:", "/a", true),
            ("Disallow: /a", "/ab", false),
            ("Disallow: /a/", "/a", true),
            ("Disallow: /a\nAllow: /ab", "/abc", true),
            ("Allow: /a\nDisallow: /ab", "/abc", false),
            ("Disallow: /a\nAllow: /a", "/a", true),
            ("Disallow: /*.gif$", "/x/y.gif", false),
            ("Disallow: /*.gif$", "/x/y.gif?z", true),
            ("Disallow: /*?page=", "/a?b=1&page=2", true),
            ("Disallow: /*page=", "/a?b=1&page=2", false),
            ("Disallow: *", "/a", false),
            ("Disallow: /a*b*c$", "/a1b2b3c", false),
            ("Disallow: /a*b*c$", "/a1b2c3", true),
            ("Disallow: /a**b", "/axb", false),
            ("Disallow: /$", "/", false),
            ("Disallow: /$", "/a", true),
            ("Disallow: /", "/robots.txt", true),
            ("Disallow: /caf%c3%a9", "/café", false),
            ("Disallow: /café", "/caf%C3%A9/x", false),
            ("Disallow: /%61", "/a", false),
            ("Disallow: /a%2Fb", "/a/b", true),
            ("disALLOW : /a # comment", "/a", false),
            ("Nonsense\n: /\nDisallow /a\nDisallow: a", "/a", true),
        ] {
            assert_eq!(allows(rules, path), allowed, "{rules} {path}");
        }
    }

    #[test]
    fn the_groups_of_our_name_count_or_else_those_of_all() {
        let text = "User-agent: other\nDisallow: /\n\n\
                    User-agent: *\nDisallow: /all\nCrawl-delay: 9\n\n\
                    User-agent: other\nUser-Agent: KITTIWAKE/2.0\nDisallow: /ours\nCrawl-delay: 2.5\n\n\
                    User-agent: kittiwake\nDisallow: /more\n";
        let robots = robots(text);
        assert_eq!(robots.delay_s, Some(2.5));
        let allowed = ["/all", "/ours", "/more", "/"].map(|path| robots.allows(path));
        assert_eq!(allowed, [true, false, false, true]);
        let without = text.to_lowercase().replace("kittiwake", "osprey");
        let robots = Robots::parse(without.as_bytes());
        assert_eq!((robots.delay_s, robots.allows("/all")), (Some(9.0), false));
        // A name that only begins like ours is another.
        let other = Robots::parse(b"User-agent: kittiwakes\nDisallow: /\nUser-agent: *\nAllow: /");
        assert!(other.allows("/"));
        // A group that names us and forbids nothing frees us of what all are asked.
        let free = Robots::parse(b"User-agent: *\nDisallow: /\nUser-agent: kittiwake\nDisallow:");
        assert!(free.allows("/x"));
    }

    #[test]
    fn a_file_is_read_as_far_as_it_goes() {
        assert!(robots("").allows("/"));
        assert!(Robots::parse("\u{feff}User-agent: *\r\nDisallow: /a".as_bytes()).allows("/b"));
        assert!(!Robots::parse("\u{feff}User-agent: *\rDisallow: /a".as_bytes()).allows("/a"));
        let mut long = "User-agent: *\n".to_owned();
        long.push_str(&"Disallow: /x\n".repeat(50_000));
        long.push_str("Disallow: /late\n");
        assert!(Robots::parse(long.as_bytes()).allows("/late"));
        assert!(!Robots::parse(long.as_bytes()).allows("/x"));
        // Half a line says what nobody said.
        let rule = "\nAllow: /";
        let mut cut = "User-agent: *\nDisallow: /\n".to_owned();
        cut.push_str(&"#".repeat(ROBOTS_BYTES_MAX - cut.len() - rule.len()));
        cut.push_str(rule);
        assert!(!Robots::parse(cut.as_bytes()).allows("/x"));
        assert!(!Robots::parse((cut + "public").as_bytes()).allows("/x"));
        for delay in ["-1", "nan", "inf", "x", "0"] {
            assert_eq!(
                robots(&format!("User-agent: *\nCrawl-delay: {delay}")).delay_s,
                None
            );
        }
        assert_eq!(
            robots("User-agent: *\nCrawl-delay: 1e9").delay_s,
            Some(3_600.0)
        );
    }

    /// A path and a rule held against each other in the plainest way.
    fn fits_plainly(rule: &[u8], path: &[u8]) -> bool {
        match rule.split_first() {
            None => true,
            Some((b'$', [])) => path.is_empty(),
            Some((b'*', rest)) => (0..=path.len()).any(|from| fits_plainly(rest, &path[from..])),
            Some((byte, rest)) => path.first() == Some(byte) && fits_plainly(rest, &path[1..]),
        }
    }

    proptest! {
        #[test]
        fn a_rule_fits_as_its_letters_say(rule in "/[ab*/]{0,8}\\$?", path in "/[ab/]{0,12}") {
            let expected = !fits_plainly(rule.as_bytes(), path.as_bytes());
            prop_assert_eq!(allows(&format!("Disallow: {rule}"), &path), expected);
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), path in "\\PC{0,40}") {
            Robots::parse(&bytes).allows(&path);
        }

        #[test]
        fn a_path_is_encoded_once(path in "/[a-zé%/0-9?=]{0,30}") {
            let once = encoded(&path);
            prop_assert_eq!(encoded(&once), once);
        }
    }

    #[test]
    fn a_sign_that_encodes_nothing_is_no_other_path() {
        assert_eq!(encoded("/%2%35"), "/%2525");
        assert_eq!(encoded("/100%"), encoded("/100%25"));
        assert!(!allows("Disallow: /100%", "/100%25/x"));
        assert!(!allows("Disallow: /100%25", "/100%"));
        assert!(allows("Disallow: /%2%35", "/%25"));
    }

    #[test]
    fn a_host_may_want_to_be_asked_again_sooner_but_not_all_the_time() {
        let day = RobotsRule {
            again_after_us: 86_400_000_000,
        };
        for (header, seconds) in [
            (None, 86_400),
            (Some("max-age=7200"), 7_200),
            (Some("public, Max-Age=999999999999999999999"), 86_400),
            (Some("public, max-age=604800"), 86_400),
            (Some("no-cache, max-age=7200"), 300),
            (Some("max-age=0"), 300),
            (Some("max-age=-7"), 300),
            (Some("private"), 86_400),
        ] {
            assert_eq!(day.believed_us(header), seconds * 1_000_000, "{header:?}");
        }
        let short = RobotsRule {
            again_after_us: 2_000_000,
        };
        assert_eq!(short.believed_us(Some("max-age=60")), 2_000_000);
        assert_eq!(short.believed_us(Some("no-store")), 2_000_000);
    }

    #[test]
    fn many_stars_take_no_time() {
        let rule = format!("Disallow: /{}x$", "*a".repeat(900));
        assert!(allows(&rule, &format!("/{}", "a".repeat(100_000))));
    }
}
