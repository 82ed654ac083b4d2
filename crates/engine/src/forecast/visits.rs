//! How many calls a visit takes. Pure.

use super::{Case, Known, RobotRules, StepRules, Subject, Tally, Task, Usual};
use crate::settings::History;
use kittiwake_model::WorldTime;
use kittiwake_network::{Length, PagePlace};

/// From so many people on it can be told what is usual.
const TELLING_PEOPLE: usize = 8;

impl Usual {
    /// What is usual of people of whom nobody has counted anything.
    const UNOBSERVED: Self = Self {
        following: (1, 120, 2_000),
        followers: (0, 120, 5_000),
        posts: (0, 400, 20_000),
    };

    /// What is usual of those who were counted, if they are enough.
    pub(super) fn of(subjects: &[Subject]) -> Self {
        let usual = |count: fn(&Subject) -> Option<u64>, unobserved: (u64, u64, u64)| {
            let mut counts: Vec<u64> = subjects.iter().filter_map(count).collect();
            counts.sort_unstable();
            let (Some(least), Some(most)) = (counts.first(), counts.last()) else {
                return unobserved;
            };
            if counts.len() < TELLING_PEOPLE {
                return unobserved;
            }
            let mean = counts.iter().sum::<u64>() / counts.len() as u64;
            (*least, mean, most.saturating_mul(2))
        };
        let unobserved = Self::UNOBSERVED;
        Self {
            following: usual(|it| it.following, unobserved.following),
            followers: usual(|it| it.followers, unobserved.followers),
            posts: usual(|it| it.posts, unobserved.posts),
        }
    }
}

impl Subject {
    /// Whether the counts are known that tell how many calls it takes.
    pub(super) fn is_counted(&self) -> bool {
        self.posts.is_some() || self.following.is_some() || self.followers.is_some()
    }
}

impl Known {
    /// How long a list of a subject is.
    pub(super) fn length(&self, subject: &Subject, length: Option<Length>, case: Case) -> u64 {
        let (known, usual) = match length {
            Some(Length::Following) => (subject.following, self.usual.following),
            Some(Length::Followers) => (subject.followers, self.usual.followers),
            Some(Length::Posts) => (subject.posts, self.usual.posts),
            Some(Length::Reposts | Length::Likes) => (None, (1, 5, 200)),
            None => (None, (0, 200, 4_000)),
        };
        known.unwrap_or_else(|| case.pick(usual))
    }

    /// Adds the calls of all visits to a subject, `weight` times. Those that share calls with
    /// others are counted in `batched`, by robot.
    pub(super) fn add_visits(
        &self,
        subject: &Subject,
        weight: f64,
        case: Case,
        tally: &mut Tally,
        batched: &mut [f64],
    ) {
        if subject.opted_out {
            return;
        }
        let mut is_visited = false;
        for (place, robot) in self.robots.iter().enumerate() {
            let task = subject.tasks.get(place).copied().unwrap_or_default();
            if robot.kind != subject.kind || !task.is_due {
                continue;
            }
            is_visited = true;
            if robot.batch > 1 {
                batched[place] += weight;
                continue;
            }
            for step in &robot.steps {
                let walk = self.walk(step, subject, task, case);
                let items = walk.items / walk.calls().max(1.0);
                for (page, calls) in walk.pages {
                    tally.add(
                        place,
                        &step.query,
                        page,
                        weight * calls,
                        weight * calls * items,
                    );
                }
                if subject.is_invalid {
                    break;
                }
            }
        }
        if let (true, true, Some((robot, query))) = (is_visited, subject.needs_lookup, &self.lookup)
        {
            tally.add(*robot, query, PagePlace::First, weight, weight);
        }
    }

    /// The calls that a list still takes.
    fn walk(&self, step: &StepRules, subject: &Subject, task: Task, case: Case) -> Walk {
        let Some(size) = step.page_size else {
            return Walk::of(PagePlace::First, 0.0, 1.0);
        };
        if subject.is_invalid {
            return Walk::of(PagePlace::First, 0.0, 0.0);
        }
        let length = self.length(subject, step.length, case) as f64;
        let number = task.visits.saturating_add(1);
        let known = subject.walks.iter();
        let begun = known
            .filter(|walk| walk.digest == step.digest)
            .find(|walk| walk.query == step.query);
        match begun {
            Some(walk) if walk.is_complete && walk.walk >= number => Walk::default(),
            Some(walk) if walk.is_complete && walk.has_mark && step.is_incremental => {
                let fresh = fresh_posts(length, subject.created, task.visited, self.now);
                Walk::of(PagePlace::Since, (fresh / f64::from(size)).floor(), fresh)
            }
            Some(walk) if !walk.is_complete => {
                let pages = self.pages(step, size, length, subject, case);
                let left = (pages - f64::from(walk.pages)).max(1.0);
                let items = (length - f64::from(walk.items)).max(0.0);
                Walk {
                    pages: vec![(PagePlace::Further, left)],
                    items,
                }
            }
            _ => {
                let pages = self.pages(step, size, length, subject, case);
                let items = length.min(pages * f64::from(size));
                Walk::of(PagePlace::First, pages - 1.0, items)
            }
        }
    }

    /// The pages of a whole list. A full page is followed by another, even by an empty one.
    fn pages(
        &self,
        step: &StepRules,
        size: u32,
        length: f64,
        subject: &Subject,
        case: Case,
    ) -> f64 {
        let size = f64::from(size);
        let whole = (length / size).floor() + 1.0;
        let pages = if step.is_incremental {
            match self.history {
                History::All => whole,
                History::Posts(posts) => whole.min((f64::from(posts) / size).ceil().max(1.0)),
                History::Since(since) => {
                    let part = part_since(subject.created, since, self.now, case);
                    whole.min((length * part / size).floor() + 1.0)
                }
            }
        } else {
            whole
        };
        pages.clamp(1.0, f64::from(step.pages_max.max(1)))
    }

    /// How many posts a subject's timeline shows to a crawl that goes back as far as this one.
    pub(super) fn posts_shown(&self, subject: &Subject, case: Case) -> f64 {
        let steps = self.robots.iter().flat_map(|robot| &robot.steps);
        let timeline = steps
            .filter(|step| step.length == Some(Length::Posts))
            .find_map(|step| Some((step, step.page_size?)));
        let Some((step, size)) = timeline.filter(|_| !subject.opted_out && !subject.is_invalid)
        else {
            return 0.0;
        };
        let length = self.length(subject, step.length, case) as f64;
        length.min(self.pages(step, size, length, subject, case) * f64::from(size))
    }
}

/// The calls of one walk.
#[derive(Debug, Default)]
struct Walk {
    pages: Vec<(PagePlace, f64)>,
    items: f64,
}

impl Walk {
    fn of(first: PagePlace, further: f64, items: f64) -> Self {
        Self {
            pages: vec![(first, 1.0), (PagePlace::Further, further)],
            items,
        }
    }

    fn calls(&self) -> f64 {
        self.pages.iter().map(|(_, calls)| calls).sum()
    }
}

/// Posts since the last visit, by the rate at which the account has posted so far.
fn fresh_posts(
    length: f64,
    created: Option<WorldTime>,
    visited: Option<WorldTime>,
    now: WorldTime,
) -> f64 {
    let (Some(created), Some(visited)) = (created, visited) else {
        return 0.0;
    };
    let age_us = now.since_us(created).max(1) as f64;
    let away_us = now.since_us(visited).max(0) as f64;
    length * (away_us / age_us).min(1.0)
}

/// Which part of an account's posts is younger than a time, if it has always posted alike.
fn part_since(created: Option<WorldTime>, since: WorldTime, now: WorldTime, case: Case) -> f64 {
    let Some(created) = created else {
        return case.pick((0.0, 0.5, 1.0));
    };
    let age_us = now.since_us(created).max(1) as f64;
    let part = (now.since_us(since).max(0) as f64 / age_us).min(1.0);
    // Nobody posts alike all the time.
    case.pick((part / 3.0, part, (part * 3.0).min(1.0)))
}

/// The calls in which so many subjects are asked for.
pub(super) fn batches(robot: &RobotRules, subjects: f64) -> f64 {
    (subjects / robot.batch.max(1) as f64 - 1e-9)
        .ceil()
        .max(0.0)
}
