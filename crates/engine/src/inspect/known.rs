//! Whom a definition can be tried on: what the user named, and what answers brought.

use kittiwake_model::{Group, Identity, Key, Name, Object, Reference, Standing, Value};
use kittiwake_network::{Ask, Network, Page, Query, Reading, RequestError, Step};
use url::Url;

/// Objects that are remembered at the most.
const KNOWN_MAX: usize = 5_000;
/// Subjects of a call that takes several.
const BATCH_MAX: usize = 3;

/// Where questions go.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub network: &'a Network,
    pub base: &'a Url,
    pub host: &'a str,
    pub authenticated: bool,
}

impl<'a> Place<'a> {
    pub(super) fn ask(self, query: &'a Query, subjects: &'a [&'a Identity]) -> Ask<'a> {
        Ask {
            query,
            base: self.base,
            host: self.host,
            subjects,
            page: Page::First,
            authenticated: self.authenticated,
        }
    }
}

/// An object that can be asked about.
struct Subject {
    identity: Identity,
    groups: Vec<Group>,
    /// Whom the user named is asked about in any case.
    is_named: bool,
    /// Who is gone, or asks not to be collected, and what they wrote.
    is_left_alone: bool,
}

impl Subject {
    fn count(&self, column: &str) -> Option<i64> {
        let mut fields = self.groups.iter().flat_map(|group| &group.fields);
        fields.find_map(|(name, value)| match value {
            Value::Int(count) if &**name == column => Some(*count),
            _ => None,
        })
    }
}

/// Everybody whom one can ask about, in the order in which they became known.
pub(super) struct Known {
    subjects: Vec<Subject>,
}

impl Known {
    pub(super) fn new(named: impl IntoIterator<Item = Identity>) -> Self {
        let subject = |identity| Subject {
            identity,
            groups: Vec::new(),
            is_named: true,
            is_left_alone: false,
        };
        Self {
            subjects: named.into_iter().map(subject).collect(),
        }
    }

    /// The subjects as an answer is told of them; a key is a place in the list.
    pub(super) fn get(&self, chosen: &[usize]) -> Vec<(Key, &Identity)> {
        let identity = |place: &usize| (Key(*place as i64), &self.subjects[*place].identity);
        chosen.iter().map(identity).collect()
    }

    /// Takes in what an answer brought: objects first, then those who are only named.
    pub(super) fn learn(&mut self, reading: &Reading) {
        for object in &reading.objects {
            let asked = object.known_as.and_then(|key| usize::try_from(key.0).ok());
            let found = Subject {
                identity: object.identity.clone(),
                groups: object.groups.clone(),
                is_named: false,
                is_left_alone: is_left_alone(object) || author_is_left_alone(object, reading),
            };
            self.add(found, asked);
        }
        for link in &reading.links {
            for end in [&link.from, &link.to] {
                if let Reference::Identity(identity) = end {
                    let found = Subject {
                        identity: Identity::clone(identity),
                        groups: Vec::new(),
                        is_named: false,
                        is_left_alone: false,
                    };
                    self.add(found, None);
                }
            }
        }
    }

    fn add(&mut self, found: Subject, asked: Option<usize>) {
        let identity = &found.identity;
        let is_same = |known: &Subject| {
            let canonical = known.identity.canonical.as_ref();
            known.identity.kind == identity.kind
                && (canonical.is_some() && canonical == identity.canonical.as_ref()
                    || known.identity == *identity)
        };
        let place = asked.or_else(|| self.subjects.iter().position(is_same));
        let Some(known) = place.and_then(|place| self.subjects.get_mut(place)) else {
            if self.subjects.len() < KNOWN_MAX {
                self.subjects.push(found);
            }
            return;
        };
        if known.identity.canonical.is_none() {
            known.identity.canonical.clone_from(&identity.canonical);
        }
        for alias in &identity.aliases {
            if !known.identity.aliases.contains(alias) {
                known.identity.aliases.push(alias.clone());
            }
        }
        known.is_left_alone |= found.is_left_alone;
        if known.groups.is_empty() {
            known.groups = found.groups;
        }
    }

    /// Whom to ask a query about, those first who should have something to show; an error says why
    /// there is nobody.
    pub(super) fn choose(&self, place: Place<'_>, query: &Query) -> Result<Vec<usize>, String> {
        let mut refused: Option<RequestError> = None;
        let (mut fitting, mut is_left_alone) = (Vec::new(), false);
        for (number, subject) in self.subjects.iter().enumerate() {
            if subject.identity.kind != query.kind {
                continue;
            }
            if subject.is_left_alone && !subject.is_named {
                is_left_alone = true;
                continue;
            }
            let asked = [&subject.identity];
            match place.network.request(&place.ask(query, &asked)) {
                Ok(_) => fitting.push(number),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        if fitting.is_empty() {
            return Err(match refused {
                Some(error) => error.to_string(),
                None if is_left_alone => format!(
                    "every {} that is known is gone, or asks not to be collected; name one with --seed",
                    query.kind
                ),
                None => format!("no {} is known; name one with --seed", query.kind),
            });
        }
        if let Some(column) = telling_column(place.network, query) {
            let rank = |number: &usize| -self.subjects[*number].count(&column).unwrap_or(0);
            // The order is kept among equals: whom the user named comes first.
            fitting.sort_by_key(rank);
        }
        let most = (query.batch_max.max(1) as usize).min(BATCH_MAX);
        fitting.truncate(most);
        Ok(fitting)
    }
}

/// Whether an object says that it is gone, or that it does not want to be collected.
fn is_left_alone(object: &Object) -> bool {
    let mut fields = object.groups.iter().flat_map(|group| &group.fields);
    matches!(object.standing, Standing::Invalid(_))
        || fields.any(|(name, value)| &**name == "opted_out" && *value == Value::Bool(true))
}

fn author_is_left_alone(object: &Object, reading: &Reading) -> bool {
    let mut fields = object.groups.iter().flat_map(|group| &group.fields);
    fields.any(|(name, value)| match value {
        Value::Object(Reference::Object(place)) if &**name == "author" => {
            let author = reading.objects.get(*place as usize);
            author.is_some_and(is_left_alone)
        }
        _ => false,
    })
}

/// The count of a subject that tells whether a query will have something to show.
fn telling_column(network: &Network, query: &Query) -> Option<Name> {
    if let Some(length) = network.length_of(query) {
        return Some(length.column().into());
    }
    let mut robots = network.robots().iter();
    let robot = robots.find(|robot| {
        let mut queries = robot.steps.iter().flat_map(Step::queries);
        robot.unless_zero.is_some() && queries.any(|name| *name == query.name)
    })?;
    robot.unless_zero.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_network::Answer;

    const HOST: &str = "sea.example";

    fn mastodon() -> Network {
        let text = include_str!("../../../../networks/mastodon.toml");
        Network::parse("mastodon.toml", text).expect("the shipped definition")
    }

    struct Trial {
        network: Network,
        base: Url,
        known: Known,
    }

    impl Trial {
        fn new(seed: &str) -> Self {
            let network = mastodon();
            let named = network.seed(seed, HOST).expect("a seed");
            Self {
                base: network.base(HOST).expect("a host"),
                known: Known::new([named]),
                network,
            }
        }

        /// Whom a query would be asked about, by their ids on the host.
        fn choose(&self, query: &str) -> Result<Vec<String>, String> {
            let query = self.network.query(query).expect("a query");
            let place = Place {
                network: &self.network,
                base: &self.base,
                host: HOST,
                authenticated: false,
            };
            let chosen = self.known.choose(place, query)?;
            let chosen = self.known.get(&chosen);
            let id = |identity: &Identity| identity.alias("id", HOST).unwrap_or("none").to_owned();
            Ok(chosen.into_iter().map(|(_, it)| id(it)).collect())
        }

        /// Takes in an answer about the first who is known.
        fn hear(&mut self, query: &str, body: &str) {
            let reading = self.network.read(&Answer {
                query: self.network.query(query).expect("a query"),
                base: &self.base,
                host: HOST,
                subjects: &self.known.get(&[0]),
                page: Page::First,
                url: &self.base,
                status: 200,
                header: &|_| None,
                body: body.as_bytes(),
                walk: None,
            });
            assert!(reading.outcome.is_success(), "{}", reading.reason);
            self.known.learn(&reading);
        }
    }

    fn user(id: u32, more: &str) -> String {
        format!(r#"{{"id": "{id}", "acct": "u{id}", "uri": "https://sea.example/u/{id}"{more}}}"#)
    }

    #[test]
    fn whoever_the_user_named_is_found_by_the_ids_that_answers_tell() {
        let mut trial = Trial::new("@u7");
        assert_eq!(trial.choose("lookup"), Ok(vec!["none".to_owned()]));
        let unknown = trial.choose("profile").expect_err("no id");
        assert!(unknown.contains("no alias \"id\""), "{unknown}");
        let nobody = trial.choose("status").expect_err("no post");
        assert!(nobody.contains("no status is known"), "{nobody}");
        trial.hear("lookup", &user(7, ""));
        assert_eq!(trial.choose("profile"), Ok(vec!["7".to_owned()]));
        assert_eq!(trial.known.subjects.len(), 1);
    }

    #[test]
    fn those_are_asked_about_first_who_have_something_to_show() {
        let mut trial = Trial::new("@u7");
        trial.hear("lookup", &user(7, r#", "followers_count": 1"#));
        let others = [
            user(1, r#", "followers_count": 0"#),
            user(2, r#", "followers_count": 9"#),
            user(3, r#", "followers_count": 5"#),
            user(4, ""),
        ];
        trial.hear("following", &format!("[{}]", others.join(",")));
        assert_eq!(trial.choose("followers"), Ok(vec!["2".to_owned()]));
        assert_eq!(trial.choose("featured_tags"), Ok(vec!["7".to_owned()]));
        let several: Vec<String> = ["7", "1", "2"].map(str::to_owned).into();
        assert_eq!(trial.choose("profiles"), Ok(several));
        assert_eq!(trial.known.subjects.len(), 5);
        trial.hear("following", &format!("[{}]", others.join(",")));
        assert_eq!(trial.known.subjects.len(), 5);
    }

    #[test]
    fn whoever_does_not_want_to_be_collected_is_left_alone_unless_the_user_named_them() {
        let mut trial = Trial::new("@u7");
        trial.hear("lookup", &user(7, r#", "noindex": true"#));
        assert_eq!(trial.choose("timeline"), Ok(vec!["7".to_owned()]));
        let post = |id: u32, author: String| {
            format!(r#"{{"id": "{id}", "uri": "https://sea.example/s/{id}", "account": {author}}}"#)
        };
        let shy = post(51, user(2, r#", "indexable": false"#));
        trial.hear("timeline", &format!("[{shy}]"));
        let nobody = trial.choose("status").expect_err("nobody to ask about");
        assert!(nobody.contains("asks not to be collected"), "{nobody}");
        let others = [
            shy,
            post(52, user(3, "")),
            post(53, user(4, r#", "suspended": true"#)),
        ];
        trial.hear("timeline", &format!("[{}]", others.join(",")));
        assert_eq!(trial.choose("statuses"), Ok(vec!["52".to_owned()]));
    }
}
