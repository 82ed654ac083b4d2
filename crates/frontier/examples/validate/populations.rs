//! Other populations, derived from one trace: what is true only of the trace is not true of them.
//!
//! Every population is the same each time it is made. Rates, hours, lives and clocks are drawn by user.

use kittiwake_frontier::Random;
use kittiwake_frontier::replay::{Subject, Trace};
use kittiwake_model::WorldTime;

const DAY_US: i64 = 86_400_000_000;
const HOUR_US: i64 = 3_600_000_000;
/// The seed of all populations.
const SEED: u64 = 20_181;
/// How many users one is dealt out to.
const DEALT: usize = 10;
/// How much slower time goes.
const STRETCHED: i64 = 10;
/// The least share of posts that is kept of somebody: rates are spread over four orders.
const KEPT_MIN: f64 = 1e-4;

/// A population: its name, and how it is made.
pub(crate) type Population = (&'static str, fn(&Trace) -> Trace);

pub(crate) const ALL: [Population; 16] = [
    ("all", Trace::clone),
    ("even-users", even_users),
    ("odd-users", odd_users),
    ("first-half", first_half),
    ("second-half", second_half),
    ("short", short),
    ("thinned", thinned),
    ("tenth", tenth),
    ("dealt", dealt),
    ("dealt-thinned", |trace| thinned(&dealt(trace))),
    ("time-zones", time_zones),
    ("moves", moves),
    ("lives", lives),
    ("half-silent", half_silent),
    ("stretched", stretched),
    ("bots", bots),
];

/// Made only when it is named: it takes minutes, and looking at everybody for every choice a quarter of an hour.
pub(crate) const LARGE: Population = ("million", million);

/// The same trace with other posts of each; the random source is the user's own.
fn each(trace: &Trace, posts: impl Fn(&Subject, &mut Random) -> Vec<WorldTime>) -> Trace {
    let subjects = trace.subjects.iter().map(|subject| {
        let mut random = Random::new(SEED ^ (u64::from(subject.user) << 20));
        Subject {
            posts: posts(subject, &mut random),
            spreads: Vec::new(),
            ..*subject
        }
    });
    Trace {
        subjects: subjects.collect(),
        ..trace.clone()
    }
}

fn users(trace: &Trace, is_kept: impl Fn(u32) -> bool) -> Trace {
    let subjects = trace.subjects.iter();
    let kept = subjects.filter(|subject| is_kept(subject.user));
    Trace {
        subjects: kept.cloned().collect(),
        ..trace.clone()
    }
}

fn even_users(trace: &Trace) -> Trace {
    users(trace, |user| user % 2 == 0)
}

fn odd_users(trace: &Trace) -> Trace {
    users(trace, |user| user % 2 == 1)
}

/// Part of the time, with everybody in it, also who does not post in it.
pub(crate) fn between(trace: &Trace, start: WorldTime, end: WorldTime) -> Trace {
    let within = each(trace, |subject, _| {
        let posts = subject.posts.iter().copied();
        posts.filter(|post| (start..end).contains(post)).collect()
    });
    Trace {
        start,
        end,
        ..within
    }
}

fn middle(trace: &Trace) -> WorldTime {
    trace.start.plus_us(trace.end.since_us(trace.start) / 2)
}

fn first_half(trace: &Trace) -> Trace {
    between(trace, trace.start, middle(trace))
}

fn second_half(trace: &Trace) -> Trace {
    between(trace, middle(trace), trace.end)
}

/// Ninety days from the middle on.
fn short(trace: &Trace) -> Trace {
    let start = middle(trace);
    between(trace, start, start.plus_us(90 * DAY_US))
}

/// Of each, a share of the posts that is drawn from a wide distribution: most post rarely or never.
fn thinned(trace: &Trace) -> Trace {
    each(trace, |subject, random| {
        let kept = KEPT_MIN.powf(random.share());
        let posts = subject.posts.iter().copied();
        posts.filter(|_| random.share() < kept).collect()
    })
}

/// A tenth of all posts.
fn tenth(trace: &Trace) -> Trace {
    each(trace, |subject, random| {
        let posts = subject.posts.iter().copied();
        posts.filter(|_| random.below(10) == 0).collect()
    })
}

/// Ten users for each, to whom its days are dealt out: a tenth of the rate, with the hours and the
/// bursts of a day.
fn dealt(trace: &Trace) -> Trace {
    let subjects = trace.subjects.iter().flat_map(|subject| {
        let mut random = Random::new(SEED ^ (u64::from(subject.user) << 20));
        let mut hands = vec![Vec::new(); DEALT];
        let (mut day, mut hand) = (i64::MIN, 0);
        for post in &subject.posts {
            let today = post.micros().div_euclid(DAY_US);
            if today != day {
                (day, hand) = (today, random.below(DEALT));
            }
            hands[hand].push(*post);
        }
        hands.into_iter().zip(0..).map(|(posts, hand)| Subject {
            user: subject.user * DEALT as u32 + hand,
            facet: subject.facet,
            posts,
            spreads: Vec::new(),
        })
    });
    Trace {
        subjects: subjects.collect(),
        ..trace.clone()
    }
}

/// Everybody lives in some time zone.
fn time_zones(trace: &Trace) -> Trace {
    each(trace, |subject, random| {
        let shift_us = (random.below(24) as i64 - 12) * HOUR_US;
        let posts = subject.posts.iter().map(|post| post.plus_us(shift_us));
        let is_within = |post: &WorldTime| (trace.start..=trace.end).contains(post);
        posts.filter(is_within).collect()
    })
}

/// Everybody moves to another time zone, eight to twelve hours away, every fifty to a hundred and fifty days.
fn moves(trace: &Trace) -> Trace {
    each(trace, |subject, random| {
        let (mut shift_us, mut until) = (0, trace.start);
        let mut posts = Vec::with_capacity(subject.posts.len());
        for post in &subject.posts {
            while *post >= until {
                until = until.plus_us((50.0 + 100.0 * random.share()) as i64 * DAY_US);
                shift_us = (shift_us + (8 + random.below(5) as i64) * HOUR_US) % DAY_US;
            }
            posts.push(post.plus_us(shift_us - DAY_US / 2));
        }
        posts.retain(|post| (trace.start..=trace.end).contains(post));
        posts.sort_unstable();
        posts
    })
}

/// A third falls silent for good on some day, a third only begins on some day.
fn lives(trace: &Trace) -> Trace {
    let span_us = trace.end.since_us(trace.start) as f64;
    each(trace, |subject, random| {
        let day = trace.start.plus_us((random.share() * span_us) as i64);
        let kind = random.below(3);
        let is_alive = |post: &WorldTime| match kind {
            0 => *post < day,
            1 => *post >= day,
            _ => true,
        };
        subject.posts.iter().copied().filter(is_alive).collect()
    })
}

/// As many again who never post.
fn half_silent(trace: &Trace) -> Trace {
    let mut trace = trace.clone();
    let users_max = trace.subjects.iter().map(|subject| subject.user).max();
    let silent = trace.subjects.iter().map(|subject| Subject {
        user: subject.user + users_max.unwrap_or(0) + 1,
        facet: subject.facet,
        posts: Vec::new(),
        spreads: Vec::new(),
    });
    let silent: Vec<Subject> = silent.collect();
    trace.subjects.extend(silent);
    trace
}

/// Everything ten times slower: the first tenth of the time fills all of it.
fn stretched(trace: &Trace) -> Trace {
    each(trace, |subject, _| {
        let since_us = |post: &WorldTime| post.since_us(trace.start);
        let posts = subject.posts.iter().map(since_us);
        let slowed = posts.map(|since_us| trace.start.plus_us(since_us.saturating_mul(STRETCHED)));
        slowed.take_while(|post| *post <= trace.end).collect()
    })
}

/// Everybody posts every so many hours, from one to two hundred, give or take a tenth.
fn bots(trace: &Trace) -> Trace {
    each(trace, |_, random| {
        let every_us = 200_f64.powf(random.share()) * HOUR_US as f64;
        let first_us = random.share() * every_us;
        let count = (trace.end.since_us(trace.start) as f64 / every_us) as u64;
        let times = (0..count).map(|turn| {
            let jitter_us = (random.share() - 0.5) * 0.2 * every_us;
            first_us + turn as f64 * every_us + jitter_us
        });
        let posts = times.map(|since_us| trace.start.plus_us(since_us.max(0.0) as i64));
        posts.filter(|post| *post <= trace.end).collect()
    })
}

/// A million people for twelve days: of each in the trace hundreds, who live through other days of the year.
fn million(trace: &Trace) -> Trace {
    const PEOPLE: usize = 1_000_000;
    const DAYS: i64 = 12;
    let mut random = Random::new(SEED);
    let starts_days = (trace.days() as usize).saturating_sub(DAYS as usize).max(1);
    let end = trace.start.plus_us(DAYS * DAY_US);
    let people = trace.subjects.iter().cycle().take(PEOPLE).zip(0..);
    let subjects = people.map(|(subject, user)| {
        let shift_us = random.below(starts_days) as i64 * DAY_US;
        let posts = &subject.posts;
        let first = posts.partition_point(|post| *post < trace.start.plus_us(shift_us));
        let after = posts.partition_point(|post| *post < end.plus_us(shift_us));
        let posts = posts[first..after].iter();
        Subject {
            user,
            facet: subject.facet,
            posts: posts.map(|post| post.plus_us(-shift_us)).collect(),
            spreads: Vec::new(),
        }
    });
    Trace {
        subjects: subjects.collect(),
        end,
        ..trace.clone()
    }
}
