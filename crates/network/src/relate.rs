//! What an answer says about the subjects it was asked for.

use crate::read::{Answer, Found, Reading};
use kittiwake_model::{Identity, Link, OutcomeCode, Reference, Standing, Walk};

/// Relates what a select found to the subjects.
pub(crate) fn take_found(answer: &Answer<'_>, found: &Found, reading: &mut Reading) {
    let select = &answer.query.selects[found.select];
    if select.is_subject {
        take_subjects(answer, found, reading);
    }
    if let (Some(rule), Some((subject, _))) = (&select.link, answer.subjects.first()) {
        let walk = match (answer.query.list, answer.walk) {
            (Some(list), Some(number)) => Some(Walk { list, number }),
            _ => None,
        };
        for place in &found.objects {
            let (subject, item) = (Reference::Key(*subject), Reference::Object(*place));
            let (from, to) = if rule.is_from_subject {
                (subject, item)
            } else {
                (item, subject)
            };
            reading.links.push(Link {
                table: rule.table,
                kind: rule.kind.clone(),
                from,
                to,
                at: None,
                walk,
            });
        }
    }
}

/// Finds the answered objects among the subjects, and says which are absent or gone.
fn take_subjects(answer: &Answer<'_>, found: &Found, reading: &mut Reading) {
    let is_single = answer.query.batch_max == 1;
    let mut answered = vec![false; answer.subjects.len()];
    for place in &found.objects {
        let object = &mut reading.objects[*place as usize];
        let subject = if is_single {
            (!answer.subjects.is_empty()).then_some(0)
        } else {
            subject_of(answer, &object.identity)
        };
        let Some(subject) = subject else {
            continue;
        };
        let (key, _) = answer.subjects[subject];
        object.known_as = Some(key);
        answered[subject] = true;
        if let Standing::Invalid(code) = object.standing {
            let reason = code.code().to_owned();
            reading.subject_outcomes.push((key, code, reason));
        }
    }
    let reason = if is_single {
        "absent from answer"
    } else {
        "absent from batch"
    };
    for ((key, _), _) in answer
        .subjects
        .iter()
        .zip(answered)
        .filter(|(_, is_answered)| !is_answered)
    {
        let outcome = (*key, OutcomeCode::NotFound, reason.to_owned());
        reading.subject_outcomes.push(outcome);
    }
}

/// Which subject an object of a batch is: by canonical id, else by alias.
fn subject_of(answer: &Answer<'_>, identity: &Identity) -> Option<usize> {
    let place = |wanted: &dyn Fn(&Identity) -> bool| {
        answer
            .subjects
            .iter()
            .position(|(_, subject)| wanted(subject))
    };
    let shares_alias = |subject: &Identity, movable: bool| {
        subject.aliases.iter().any(|alias| {
            alias.movable == movable
                && identity.aliases.iter().any(|other| {
                    other.name == alias.name && other.host == alias.host && other.id == alias.id
                })
        })
    };
    place(&|subject| subject.canonical.is_some() && subject.canonical == identity.canonical)
        .or_else(|| place(&|subject| shares_alias(subject, false)))
        .or_else(|| place(&|subject| shares_alias(subject, true)))
}
