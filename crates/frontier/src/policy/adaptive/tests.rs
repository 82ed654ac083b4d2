use super::*;

fn hour(hours: f64) -> WorldTime {
    WorldTime((hours * HOUR_US as f64) as i64)
}

const POLICY: Adaptive = Adaptive {
    page: 100.0,
    objective: Objective {
        patience: 1.0,
        is_hot: false,
        loss_days: 100.0,
    },
};

/// Visits every `gap` hours for sixty days somebody who posts when `posts` says so.
fn visited(policy: &Adaptive, shared: &mut Shared, gap: f64, posts: &[WorldTime]) -> State {
    let mut state = policy.meet(shared, &Facts::default(), hour(0.0));
    let (mut at, mut seen) = (0.0, 0);
    while at < 24.0 * 60.0 {
        at += gap;
        let until = posts.partition_point(|post| *post <= hour(at));
        let first = until.saturating_sub(policy.page as usize).max(seen);
        let visit = Visit {
            is_full: until - first == policy.page as usize,
            ..Visit::complete(hour(at), &posts[first..until])
        };
        policy.observe(shared, &mut state, &visit);
        seen = until;
    }
    policy.epoch(shared, hour(at));
    state
}

/// Posts every `gap` hours.
fn steady(gap: f64) -> Vec<WorldTime> {
    (0..(24.0 * 60.0 / gap) as u32)
        .map(|post| hour(f64::from(post) * gap))
        .collect()
}

#[test]
fn the_state_is_at_most_64_bytes() {
    let state = visited(&POLICY, &mut Shared::default(), 24.0, &steady(3.0));
    assert!(state.bytes().len() <= 64);
    assert!(
        POLICY
            .meet(&Shared::default(), &Facts::default(), hour(0.0))
            .bytes()
            .len()
            <= 64
    );
}

#[test]
fn as_many_posts_are_expected_as_come() {
    let mut shared = Shared::default();
    let state = visited(&POLICY, &mut shared, 24.0, &steady(2.0));
    let belief = Adaptive::belief(&shared, &state, hour(0.0));
    let expected = belief.expected(&shared, hour(24.0 * 61.0));
    assert!((expected - 12.0).abs() < 1.5, "{expected}");
}

#[test]
fn a_full_page_does_not_hide_how_busy_somebody_is() {
    // 240 posts wait at every visit, of which 100 are seen.
    let mut shared = Shared::default();
    let state = visited(&POLICY, &mut shared, 24.0, &steady(0.1));
    let belief = Adaptive::belief(&shared, &state, hour(0.0));
    assert!(belief.fast > 200.0, "{}", belief.fast);
}

#[test]
fn whoever_wakes_up_is_noticed_within_a_visit_or_two() {
    let mut shared = Shared::default();
    let mut posts = Vec::new();
    let mut state = visited(&POLICY, &mut shared, 24.0, &posts);
    let asleep = Adaptive::belief(&shared, &state, hour(0.0)).pace(&shared);
    for step in 0..40 {
        posts.push(hour(24.0 * 61.0 - f64::from(40 - step) * 0.5));
    }
    POLICY.observe(
        &mut shared,
        &mut state,
        &Visit::complete(hour(24.0 * 61.0), &posts),
    );
    let awake = Adaptive::belief(&shared, &state, hour(0.0)).pace(&shared);
    assert!(asleep < 0.1 && awake > 1.0, "{asleep} {awake}");
    // And whoever never posts is not forgotten.
    assert!(POLICY.due(&shared, &state, 1.0, hour(24.0 * 62.0)) < hour(24.0 * 70.0));
}

#[test]
fn old_posts_of_a_first_visit_are_history_not_news() {
    let mut shared = Shared::default();
    let met = hour(24.0 * 1_000.0);
    let mut state = POLICY.meet(&shared, &Facts::default(), met);
    // One post every ten days for three years, seen an hour after the meeting.
    let posts: Vec<WorldTime> = (0..100)
        .map(|post| hour(24.0 * 10.0 * f64::from(post)))
        .collect();
    let visit = Visit {
        is_full: true,
        ..Visit::complete(met.plus_us(HOUR_US), &posts)
    };
    POLICY.observe(&mut shared, &mut state, &visit);
    let belief = Adaptive::belief(&shared, &state, met);
    assert!(belief.fast < 0.4, "{}", belief.fast);
}

#[test]
fn the_due_time_is_when_the_index_reaches_the_price() {
    let mut shared = Shared::default();
    for (gap, posts_gap) in [(6.0, 1.0), (24.0, 5.0), (24.0, 100.0)] {
        let state = visited(&POLICY, &mut shared, gap, &steady(posts_gap));
        let now = state.visited().unwrap();
        for price in [0.01, 0.3, 2.0, 15.0] {
            let due = POLICY.due(&shared, &state, price, now);
            let index = |at| POLICY.index(&shared, &state, at);
            let told = format!("{gap} {posts_gap} {price} {now:?} {due:?}");
            assert!(index(due.plus_us(HOUR_US)) > 0.7 * price, "{told}");
            let before = due.plus_us(-2 * HOUR_US);
            assert!(
                before <= now || index(before) < 1.3 * price,
                "{told} {}",
                index(before)
            );
        }
    }
}

#[test]
fn a_visit_waits_while_somebody_is_busy_and_sweeps_up_afterwards() {
    // Posts every hour from 8 to 20 h.
    let posts: Vec<WorldTime> = (0..24 * 60)
        .map(f64::from)
        .filter(|at| (8.0..20.0).contains(&(at % 24.0)))
        .map(hour)
        .collect();
    let mut shared = Shared::default();
    let state = visited(&POLICY, &mut shared, 24.0, &posts);
    let belief = Adaptive::belief(&shared, &state, hour(0.0));
    let day = 24.0 * 61.0;
    let per_post = |at: f64| {
        let expected = belief.expected(&shared, hour(day + at));
        POLICY.worth(&shared, &belief, hour(day + at)) / (expected * expected)
    };
    assert!(per_post(20.0) > 2.0 * per_post(12.0));
}

#[test]
fn overflow_is_feared_where_it_threatens() {
    let memory = Memory::read(&State::default());
    assert!(POLICY.overflow(&memory, 1.0).abs() < 1e-12);
    assert!(POLICY.overflow(&memory, 80.0) > 0.1);
    assert!(POLICY.overflow(&memory, 1e6) > 0.6);
    assert!((upper_tail(1.96) - 0.025).abs() < 1e-4);
    assert!((upper_tail(-1.0) - 0.841_345).abs() < 1e-5);
}

#[test]
fn whoever_overflows_is_worth_more_the_longer_it_waits() {
    let mut shared = Shared::default();
    let state = visited(&POLICY, &mut shared, 24.0, &steady(0.5));
    let index = |day: f64| POLICY.index(&shared, &state, hour(24.0 * (60.0 + day)));
    // 48 posts a day: a page is full after two days, and nobody doubts it after eight.
    assert!(index(16.0) > 1.05 * index(8.0));
    assert!(index(32.0) > 1.05 * index(16.0));
}

#[test]
fn a_hot_post_weighs_what_it_spreads() {
    let hot = Adaptive::new(
        100,
        Objective {
            is_hot: true,
            ..Objective::default()
        },
    );
    let index = |spread: u32| {
        let mut shared = Shared::default();
        let mut state = hot.meet(&shared, &Facts::default(), hour(0.0));
        for day in 1..40 {
            let posts = [hour(f64::from(day) * 24.0 - 5.0)];
            let visit = Visit {
                spreads: &[spread],
                ..Visit::complete(hour(f64::from(day) * 24.0), &posts)
            };
            hot.observe(&mut shared, &mut state, &visit);
        }
        hot.index(&shared, &state, hour(24.0 * 41.0))
    };
    assert!(
        index(1_000) > 20.0 * index(5),
        "{} {}",
        index(1_000),
        index(5)
    );
}

#[test]
fn a_card_says_whom_to_visit_first() {
    let shared = Shared::default();
    let index = |posts: Option<u64>| {
        let facts = Facts {
            posts,
            age_days: Some(1_000.0),
            ..Facts::default()
        };
        let state = POLICY.meet(&shared, &facts, hour(0.0));
        POLICY.index(&shared, &state, hour(24.0))
    };
    assert!(index(Some(20_000)) > 2.0 * index(Some(1_000)));
    assert!(index(Some(1_000)) > index(Some(0)));
    assert!(index(None) > 0.0);
}

#[test]
fn what_cards_promise_is_learnt_from_first_visits() {
    // In this world everybody posts a tenth of what the counts say.
    let mut shared = Shared::default();
    for user in 1..200_u64 {
        let facts = Facts {
            posts: Some(user * 100),
            age_days: Some(1_000.0),
            ..Facts::default()
        };
        let mut state = POLICY.meet(&shared, &facts, hour(0.0));
        let rate = user as f64 * 0.01;
        let posts: Vec<WorldTime> = (0..(rate * 30.0) as u32)
            .map(|post| hour(f64::from(post) * 24.0 / rate))
            .collect();
        POLICY.observe(
            &mut shared,
            &mut state,
            &Visit::complete(hour(24.0 * 30.0), &posts),
        );
    }
    POLICY.epoch(&mut shared, hour(24.0 * 30.0));
    let facts = Facts {
        posts: Some(10_000),
        age_days: Some(1_000.0),
        ..Facts::default()
    };
    let state = POLICY.meet(&shared, &facts, hour(0.0));
    let promised = Card::read(&state).unwrap().rate(&shared.card_weights);
    assert!((0.6..1.7).contains(&promised), "{promised}");
}

/// Four posts of each of so many days, at other ones of the eight hours after `begin` every day.
fn daily(days: std::ops::Range<u32>, begin: u32) -> Vec<WorldTime> {
    let of_day = |day: u32| (0..4).map(move |turn| (day, (day * 3 + turn * 2) % 8));
    let at = days.flat_map(of_day);
    at.map(|(day, later)| hour(f64::from(day * 24 + begin + later) + 0.5))
        .collect()
}

fn hours_of(state: &State, range: std::ops::Range<usize>) -> f32 {
    let hours = Adaptive::belief(&Shared::default(), state, hour(0.0)).hours;
    hours[range].iter().sum::<f32>() / 8.0
}

#[test]
fn whoever_moves_to_another_time_zone_is_followed_within_days() {
    let mut shared = Shared::default();
    let mut state = visited(&POLICY, &mut shared, 24.0, &daily(0..60, 4));
    assert!(hours_of(&state, 4..12) > 4.0 * hours_of(&state, 14..22));
    for day in 61..65 {
        let posts = daily(day..day + 1, 14);
        let visit = Visit::complete(hour(f64::from(day) * 24.0 + 24.0), &posts);
        POLICY.observe(&mut shared, &mut state, &visit);
    }
    assert!(hours_of(&state, 14..22) > hours_of(&state, 4..12));
}

#[test]
fn one_post_at_an_odd_hour_does_not_change_the_day() {
    let mut shared = Shared::default();
    let mut state = visited(&POLICY, &mut shared, 24.0, &daily(0..60, 4));
    let odd = [hour(24.0 * 61.0 + 18.5)];
    POLICY.observe(
        &mut shared,
        &mut state,
        &Visit::complete(hour(24.0 * 62.0), &odd),
    );
    assert!(hours_of(&state, 4..12) > 3.0 * hours_of(&state, 14..22));
}
