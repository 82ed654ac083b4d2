//! How many people there will be, and what they all take. Pure.
//!
//! Whoever is known from lists that were walked, and has not been walked themselves, was met by
//! chance, and the more likely the more links they have. So each of them stands for others of the
//! same kind whom chance left out; how many those are follows from how often the same people were
//! met twice. Walking on meets some of them, in the same way. (A sample weighted by the inverse of
//! its chances, after Horvitz and Thompson, in a network whose links are otherwise random.)

use super::visits::batches;
use super::{Case, Known, Reckoning, RobotRules, Subject, Tally, Walked, all_due};
use kittiwake_network::{Length, PagePlace};

/// What a step into the unknown adds to what chance alone would make of it: networks are no games
/// of chance.
const STRUCTURE: (f64, f64, f64) = (0.75, 1.0, 1.35);
/// The part of all links that leads to somebody new, where nothing was observed.
const UNOBSERVED_NEW: (f64, f64, f64) = (0.25, 0.8, 1.0);
/// People whom a conversation or a list of reposters brings within reach who are not there yet.
const BROUGHT_PER_CALL: (f64, f64, f64) = (0.0, 0.5, 3.0);
/// The share of posts that somebody answered or reposted, where nothing was observed.
const UNOBSERVED_SHARE: (f64, f64, f64) = (0.0, 0.3, 1.0);
/// No estimate goes beyond what there are people on earth, by far.
const PEOPLE_MAX: f64 = 1e10;

/// Reckons one case through all depths.
pub(super) fn reckon(known: &Known, case: Case) -> Reckoning {
    let mut crowd = Crowd::new(known, case);
    let mut reckoning = Reckoning::default();
    let mut posts_known: f64 = most_posts(known);
    let mut brought = 0.0;
    for depth in 0..=known.depth_max {
        let found = crowd.found(depth, brought);
        let mut batched = vec![0.0; known.robots.len()];
        let mut posts = 0.0;
        let tally = &mut reckoning.tally;
        let mut people = 0.0;
        for subject in known.at(depth) {
            known.add_visits(subject, known.weight, case, tally, &mut batched);
            if known.is_person(subject) {
                posts += known.weight * known.posts_shown(subject, case);
                people += known.weight;
            }
        }
        for (person, weight) in &found {
            known.add_visits(person, *weight, case, tally, &mut batched);
            posts += weight * known.posts_shown(person, case);
            people += weight;
        }
        for (place, robot) in known.robots.iter().enumerate() {
            let calls = batches(robot, batched[place]);
            if let Some(step) = robot.steps.first() {
                tally.add(place, &step.query, PagePlace::First, calls, batched[place]);
            }
        }
        // Posts that are known already are those of the nearest.
        let fresh = (posts - posts_known).max(0.0);
        posts_known = (posts_known - posts).max(0.0);
        brought = known.add_posts(fresh, depth == 0, case, tally);
        reckoning.people.push(people.min(PEOPLE_MAX));
    }
    reckoning
}

fn most_posts(known: &Known) -> f64 {
    let told = known.posts.iter().filter(|_| known.are_posts_kept);
    let posts = told.map(|told| told.posts);
    posts.max().unwrap_or(0) as f64
}

impl Subject {
    fn is_unwalked(&self) -> bool {
        (self.walked_following, self.walked_followers) == (Walked::Nothing, Walked::Nothing)
    }
}

impl Known {
    fn at(&self, depth: u32) -> impl Iterator<Item = &Subject> {
        self.subjects.iter().filter(move |it| it.depth == depth)
    }

    fn walks_relations(robot: &RobotRules) -> bool {
        robot
            .steps
            .iter()
            .any(|step| matches!(step.length, Some(Length::Following | Length::Followers)))
    }

    /// The robot that walks follow relations.
    fn relations(&self) -> Option<&RobotRules> {
        self.robots
            .iter()
            .find(|robot| Self::walks_relations(robot))
    }

    /// The kind of subject that has follow relations, or posts.
    fn is_person(&self, subject: &Subject) -> bool {
        let robots = self
            .robots
            .iter()
            .filter(|robot| robot.kind == subject.kind);
        robots.flat_map(|robot| &robot.steps).any(|step| {
            matches!(
                step.length,
                Some(Length::Following | Length::Followers | Length::Posts)
            )
        })
    }

    /// Links that lead from a person to others when what is left of the lists is walked.
    fn leaving(&self, person: &Subject, case: Case) -> f64 {
        if person.opted_out || person.is_invalid {
            return 0.0;
        }
        let following = self.left(person, Length::Following, person.walked_following, case);
        let followers = self.left(person, Length::Followers, person.walked_followers, case);
        f64::from(u8::from(self.follow.following)) * following
            + f64::from(u8::from(self.follow.followers)) * followers
    }

    fn left(&self, person: &Subject, length: Length, walked: Walked, case: Case) -> f64 {
        let whole = self.length(person, Some(length), case);
        match walked {
            Walked::Nothing => whole as f64,
            Walked::Items(items) => whole.saturating_sub(items) as f64,
            Walked::All => 0.0,
        }
    }

    /// Links by which a person is found when the lists of others are walked.
    fn arriving(&self, person: &Subject, case: Case) -> f64 {
        self.links(person, self.follow.followers, self.follow.following, case)
    }

    fn links(&self, person: &Subject, following: bool, followers: bool, case: Case) -> f64 {
        let out = self.length(person, Some(Length::Following), case) as f64;
        let into = self.length(person, Some(Length::Followers), case) as f64;
        f64::from(u8::from(following)) * out + f64::from(u8::from(followers)) * into
    }

    /// Adds what robots ask about posts; gives how many people that brings within reach.
    fn add_posts(&self, fresh: f64, is_first: bool, case: Case, tally: &mut Tally) -> f64 {
        let mut brought = 0.0;
        let robots = self.robots.iter().enumerate();
        for (place, robot) in robots.filter(|(_, robot)| robot.is_of_posts) {
            let Some(step) = robot.steps.first() else {
                continue;
            };
            let told = self.posts.iter().find(|told| told.robot == robot.name);
            let (due, due_pages) = told
                .filter(|_| is_first && self.are_posts_kept)
                .map_or((0.0, 0.0), |it| (it.due as f64, it.due_pages as f64));
            let asked = if robot.begins_visited {
                0.0
            } else {
                fresh * share_asked(told, case)
            };
            let subjects = due + asked;
            if robot.batch > 1 {
                let calls = batches(robot, subjects);
                tally.add(place, &step.query, PagePlace::First, calls, subjects);
                continue;
            }
            // Few posts have more than a page of anything.
            let further = (due_pages - due).max(0.0);
            tally.add(place, &step.query, PagePlace::First, subjects, subjects);
            tally.add(place, &step.query, PagePlace::Further, further, further);
            if robot.brings {
                brought += subjects * case.pick(BROUGHT_PER_CALL);
            }
        }
        brought
    }
}

/// The share of posts of which a robot has something to ask. Posts of one author are alike, so that
/// authors are counted, not posts.
fn share_asked(told: Option<&kittiwake_store::outlook::PostsOutlook>, case: Case) -> f64 {
    let Some(told) = told.filter(|told| told.posts > 0) else {
        return case.pick(UNOBSERVED_SHARE);
    };
    let share = told.asked as f64 / told.posts as f64;
    let error =
        2.0 * (share.max(0.05) * (1.0 - share).max(0.05) / told.authors.max(1) as f64).sqrt();
    case.pick((share - error, share, share + error))
        .clamp(0.0, 1.0)
}

/// Those who may be found, as far as they can be told from those who were.
struct Crowd<'a> {
    known: &'a Known,
    case: Case,
    /// Whoever was met, and for how many of their kind each stands who were not.
    unmet: Vec<(&'a Subject, f64)>,
    /// Those of whom it was reckoned that they are found, by depth.
    met: Vec<Vec<(Subject, f64)>>,
    /// Links from one who was met back to those who met them.
    back: f64,
    /// How much one person differs from another, as a factor on what all of them take.
    doubt: f64,
    /// Nobody who could stand for others is known.
    is_blind: bool,
}

impl<'a> Crowd<'a> {
    fn new(known: &'a Known, case: Case) -> Self {
        let is_met = |it: &&Subject| {
            known.is_person(it) && it.is_counted() && it.depth > 0 && it.is_unwalked()
        };
        let met: Vec<&Subject> = known.subjects.iter().filter(is_met).collect();
        let people = met.len() as f64 * known.weight;
        let links = known.leading_out as f64;
        let is_blind = met.is_empty() || links < 1.0;
        let back = if is_blind {
            0.0
        } else {
            (links / people).max(1.0)
        };
        let chances: Vec<f64> = met
            .iter()
            .map(|person| known.arriving(person, case).max(1.0))
            .collect();
        let weights = if is_blind {
            vec![0.0; met.len()]
        } else {
            unmet_weights(&chances, known.weight, links.max(people), case)
        };
        Self {
            known,
            case,
            doubt: doubt_of(&chances),
            unmet: met.into_iter().zip(weights).collect(),
            met: Vec::new(),
            back,
            is_blind,
        }
    }

    /// What is unknown of people makes the bounds of what they take wider. Where nobody is known,
    /// the bounds are wide already.
    fn doubt(&self) -> f64 {
        if self.is_blind {
            return 1.0;
        }
        self.case.pick((1.0 / self.doubt, 1.0, self.doubt))
    }

    /// People at a depth whom nobody knows yet; those of the depth before have been asked for.
    fn found(&mut self, depth: u32, brought: f64) -> Vec<(Subject, f64)> {
        let Some(before) = depth.checked_sub(1) else {
            self.met.push(Vec::new());
            return Vec::new();
        };
        let leaving = self.leaving(before);
        let mut found = if self.is_blind {
            self.found_blindly(before, leaving, brought)
        } else {
            self.found_by_chance(leaving, brought)
        };
        for (_, weight) in &mut found {
            *weight *= self.doubt();
        }
        self.met.push(found.clone());
        found
    }

    /// Links that nobody has followed yet, from people of a depth.
    fn leaving(&self, depth: u32) -> f64 {
        let (known, case) = (self.known, self.case);
        if known.relations().is_none() {
            return 0.0;
        }
        // Of both directions one is taken: the way back.
        let is_both = known.follow.following && known.follow.followers;
        let back = if is_both && depth > 0 { self.back } else { 0.0 };
        let waiting = known.at(depth).filter(|it| known.is_person(it));
        let own: f64 = waiting
            .map(|person| known.weight * (known.leaving(person, case) - back).max(0.0))
            .sum();
        let met = self.met.get(depth as usize).into_iter().flatten();
        let new: f64 = met
            .map(|(person, weight)| weight * (known.leaving(person, case) - back).max(0.0))
            .sum();
        own + new
    }

    /// Nothing was observed: what is usual has to do.
    fn found_blindly(&self, before: u32, leaving: f64, brought: f64) -> Vec<(Subject, f64)> {
        let known = self.known;
        let lists = known
            .at(before)
            .filter(|it| it.is_unwalked())
            .map(|person| {
                let list = |length, is_followed| {
                    let length = known.length(person, Some(length), self.case);
                    if is_followed { length } else { 0 }
                };
                let following = list(Length::Following, known.follow.following);
                following.max(list(Length::Followers, known.follow.followers))
            });
        // Nobody is twice on one list.
        let least = lists.max().unwrap_or(0) as f64;
        let new = (leaving * self.case.pick(UNOBSERVED_NEW)).max(least.min(leaving)) + brought;
        let Some(kind) = known.relations().map(|robot| robot.kind.clone()) else {
            return Vec::new();
        };
        vec![(somebody(known, kind), new.min(PEOPLE_MAX))]
    }

    fn found_by_chance(&mut self, leaving: f64, brought: f64) -> Vec<(Subject, f64)> {
        let (known, case) = (self.known, self.case);
        let arriving = |person: &Subject| known.arriving(person, case).max(1.0);
        let unmet: f64 = self
            .unmet
            .iter()
            .map(|(it, weight)| weight * arriving(it))
            .sum();
        if unmet <= 0.0 {
            return Vec::new();
        }
        // Links also lead to those who are known already.
        let seen: f64 = self
            .unmet
            .iter()
            .map(|(it, _)| known.weight * (arriving(it) - self.back).max(0.0))
            .sum();
        let draws = leaving * unmet / (unmet + seen) + brought;
        let draws = draws * case.pick(STRUCTURE);
        let mut found = Vec::with_capacity(self.unmet.len());
        for (person, weight) in &mut self.unmet {
            let part = 1.0 - (-draws * arriving(person) / unmet).exp();
            let new = *weight * part;
            *weight -= new;
            if new > 0.0 {
                found.push((fresh(known, person), new));
            }
        }
        found
    }
}

/// For how many people of the same kind each of those who were met stands who were not met.
///
/// `links` found the people whose chances these are, each `weight` times. If all links together
/// are T, somebody with d of them was missed with probability exp(-links·d/T); those who were met
/// make up all links when each is counted as often as they are needed to stand for their kind.
fn unmet_weights(chances: &[f64], weight: f64, links: f64, case: Case) -> Vec<f64> {
    let people = chances.len() as f64 * weight;
    let again = links - people;
    // How often somebody is met again is a matter of chance, too.
    let error = 2.0 * again.max(1.0).sqrt() + 1.0;
    let again = case.pick((again + error, again.max(1.0), (again - error).max(0.25)));
    let links = people + again;
    let all_of = |total: f64| -> f64 {
        let each = chances
            .iter()
            .map(|chance| weight * chance / met_with(links * chance / total));
        each.sum()
    };
    let (mut least, mut most) = (1.0_f64, 1.0_f64);
    while all_of(most) > most && most < 1e15 {
        least = most;
        most *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(least, most);
        if all_of(middle) > middle {
            least = middle;
        } else {
            most = middle;
        }
    }
    let unmet = |chance: &f64| weight * (1.0 / met_with(links * chance / most) - 1.0);
    chances.iter().map(unmet).collect()
}

/// The probability of being met at all.
fn met_with(expected: f64) -> f64 {
    (1.0 - (-expected).exp()).max(1e-12)
}

/// How far the mean of so few may be off, as a factor.
fn doubt_of(chances: &[f64]) -> f64 {
    let count = chances.len() as f64;
    if count < 2.0 {
        return 3.0;
    }
    let mean = chances.iter().sum::<f64>() / count;
    let square = chances.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (count - 1.0);
    1.0 + 2.0 * square.sqrt() / mean.max(1e-9) / count.sqrt()
}

/// Somebody like a person who is known, whom nobody has visited.
fn fresh(known: &Known, like: &Subject) -> Subject {
    Subject {
        walks: Vec::new(),
        tasks: all_due(known.robots.len()),
        needs_lookup: false,
        ..like.clone()
    }
}

/// Somebody of whom nothing is known.
fn somebody(known: &Known, kind: kittiwake_model::Name) -> Subject {
    Subject {
        kind,
        depth: 0,
        following: None,
        followers: None,
        posts: None,
        created: None,
        opted_out: false,
        is_invalid: false,
        needs_lookup: false,
        walked_following: Walked::Nothing,
        walked_followers: Walked::Nothing,
        tasks: all_due(known.robots.len()),
        walks: Vec::new(),
    }
}
