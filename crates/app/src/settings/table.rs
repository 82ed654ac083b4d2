//! The one table of settings. To add a setting, add an entry here and an argument of the same name
//! to a command of [`COMMANDS`]; file, environment, `config show` and the documentation's test
//! follow.

/// The commands whose arguments may be set in files and in the environment.
pub(crate) const COMMANDS: &[&str] = &["crawl", "plan", "status", "serve"];

/// Something a person sets once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The key in a settings file. The argument has the same name, with hyphens.
    pub name: &'static str,
    pub kind: Kind,
    pub default: Default,
    pub help: &'static str,
}

/// What a setting may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text of one line that may be sent in a header.
    Line,
    Number {
        min: u32,
        max: u32,
    },
    /// A part of a whole, from 0 up to (not including) 1.
    Share,
    Choice(&'static [&'static str]),
    /// Words, in a file as a list, elsewhere separated by commas.
    Words,
    Switch,
    /// A file, or a database of a server.
    Place,
}

/// What holds when nobody has set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Default {
    /// This value, as one would write it into the environment.
    Value(&'static str),
    /// No single value: in words.
    Told(&'static str),
}

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        name: "contact",
        kind: Kind::Line,
        default: Default::Told("not set"),
        help: "an e-mail address or a web page by which a host's owner can reach you",
    },
    Setting {
        name: "reserve",
        kind: Kind::Share,
        default: Default::Told("10%, and 0% on loopback"),
        help: "the share of every allowance to leave unused",
    },
    Setting {
        name: "pace",
        kind: Kind::Choice(&["even", "burst"]),
        default: Default::Value("even"),
        help: "how what a window of a limit allows is spent",
    },
    Setting {
        name: "budgets",
        kind: Kind::Place,
        default: Default::Told("this user's budgets.db"),
        help: "where grants are kept: the URL of a PostgreSQL database that machines share",
    },
    Setting {
        name: "concurrency",
        kind: Kind::Number { min: 1, max: 1024 },
        default: Default::Value("4"),
        help: "how many calls may be in flight at once",
    },
    Setting {
        name: "depth",
        kind: Kind::Number {
            min: 0,
            max: u32::MAX,
        },
        default: Default::Value("0"),
        help: "visit subjects at most this many follow links away from a seed",
    },
    Setting {
        name: "follow",
        kind: Kind::Choice(&["following", "followers", "both", "none"]),
        default: Default::Value("both"),
        help: "the follow links that lead to new subjects",
    },
    Setting {
        name: "robots",
        kind: Kind::Words,
        default: Default::Told("all of the network's"),
        help: "the robots to run",
    },
    Setting {
        name: "raw",
        kind: Kind::Switch,
        default: Default::Value("false"),
        help: "keep every answer as it came",
    },
    Setting {
        name: "quiet",
        kind: Kind::Switch,
        default: Default::Value("false"),
        help: "show no progress",
    },
];

impl Setting {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// The environment variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("KITTIWAKE_{}", self.name.to_ascii_uppercase())
    }

    /// What to write into a settings file, by an example.
    pub(crate) fn example(&self) -> String {
        let value = match self.kind {
            Kind::Line => "\"you@example.org\"".to_owned(),
            Kind::Number { min, .. } => min.max(2).to_string(),
            Kind::Share => "\"10%\"".to_owned(),
            Kind::Choice(words) => format!("{:?}", words.first().copied().unwrap_or_default()),
            Kind::Words => "[\"profiles\", \"statuses\"]".to_owned(),
            Kind::Switch => "true".to_owned(),
            Kind::Place => "\"postgres://you@db.example.org/crawls\"".to_owned(),
        };
        format!("{} = {value}", self.name)
    }
}

impl Kind {
    /// What a value has to be, to be said after "must be".
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Line => "text of one line, without letters beyond ASCII".to_owned(),
            Self::Number { min, max } => format!("a whole number from {min} to {max}"),
            Self::Share => "a share such as 10% or 0.1, below 100%".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Words => "a list of words".to_owned(),
            Self::Switch => "true or false".to_owned(),
            Self::Place => "a file, or the URL of a PostgreSQL database without a password, which \
                            goes into PGPASSWORD"
                .to_owned(),
        }
    }
}
