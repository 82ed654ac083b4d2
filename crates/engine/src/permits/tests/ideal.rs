//! What a client that sees into the server could do: it sends whenever the server will let it in.

use super::strict::{StrictServer, Verdict};
use super::{CONCURRENCY, Dice, Game, SECOND_US};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A call that it makes, by the server's clock.
pub(super) struct Sent {
    pub(super) question: usize,
    pub(super) items: u64,
    pub(super) at_us: i64,
    pub(super) over_us: i64,
}

/// How many calls it makes in the time of the game.
pub(super) fn calls(game: &Game) -> u64 {
    sent(game).len() as u64
}

pub(super) fn sent(game: &Game) -> Vec<Sent> {
    let mut server = StrictServer::new(&game.rules);
    let mut dice = Dice::new(game.seed);
    let start_us = 1_790_000_000 * SECOND_US;
    let end_us = start_us + game.seconds * SECOND_US;
    let slots = CONCURRENCY * game.processes;
    let mut answers: BinaryHeap<Reverse<i64>> = BinaryHeap::new();
    let (mut now_us, mut sent) = (start_us, Vec::new());
    while now_us < end_us {
        while answers.peek().is_some_and(|first| first.0 <= now_us) {
            answers.pop();
        }
        let mut next_us = now_us + SECOND_US;
        for (place, question) in game.questions.iter().enumerate() {
            while answers.len() < slots {
                let at_us = now_us + game.skew_us;
                // How many items come nobody can know before.
                let items = sent.len() as u64 % (question.items_max + 1);
                let most = question.items_max;
                if server.refuser(question, most, at_us).is_some() {
                    let room_us = server.next_room_us(question, at_us) - game.skew_us;
                    next_us = next_us.min(room_us);
                    break;
                }
                let answered_us = now_us + dice.between(2, game.latency_us);
                let over_us = answered_us + game.skew_us;
                if let Verdict::Admitted = server.admit(question, items, at_us, over_us) {
                    sent.push(Sent {
                        question: place,
                        items,
                        at_us,
                        over_us,
                    });
                    answers.push(Reverse(answered_us));
                }
            }
        }
        let answer_us = answers.peek().map_or(i64::MAX, |first| first.0);
        now_us = next_us.min(answer_us).max(now_us + 1);
    }
    sent
}
