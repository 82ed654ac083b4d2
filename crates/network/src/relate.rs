//! What an answer says about the subjects it was asked for.

use crate::believe::Teller;
use crate::network::{Filled, Network};
use crate::read::{Answer, Found, Reading};
use kittiwake_model::{
    Group, Identity, Key, Link, Object, OutcomeCode, Reference, Standing, Value, Walk,
};

/// Relates what the selects found to the subjects.
pub(crate) fn take_found(
    network: &Network,
    (answer, teller): (&Answer<'_>, Option<&Teller<'_>>),
    found: &[Found],
    reading: &mut Reading,
) {
    let selects = &answer.query.selects;
    let mut answered = vec![false; answer.subjects.len()];
    for one in found {
        let select = &selects[one.select];
        if select.is_subject {
            take_subjects(network, (answer, teller), (one, &mut answered), reading);
        }
        if let (Some(filled), Some((subject, _))) = (&select.fills, answer.subjects.first()) {
            for place in &one.taken.objects {
                fill(filled, *subject, &mut reading.objects[*place as usize]);
            }
        }
        take_links(answer, one, reading);
    }
    if selects.iter().any(|select| select.is_subject) {
        take_absent(answer, &answered, reading);
    }
}

fn take_links(answer: &Answer<'_>, found: &Found, reading: &mut Reading) {
    let select = &answer.query.selects[found.select];
    if let (Some(rule), Some((subject, _))) = (&select.link, answer.subjects.first()) {
        let walk = match (answer.query.list, answer.walk) {
            (Some(list), Some(number)) => Some(Walk { list, number }),
            _ => None,
        };
        let mut times = found.taken.times.iter().copied();
        for place in &found.taken.objects {
            let at = times.next().flatten();
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
                at,
                walk,
            });
        }
    }
}

/// Says of an item what the subject is to it, unless it says so itself. An item of which the list
/// tells nothing else is still to be described.
fn fill(filled: &Filled, subject: Key, item: &mut Object) {
    if item.standing != Standing::Present {
        return;
    }
    if item.groups.is_empty() {
        item.standing = Standing::Named;
    }
    let value = Value::Object(Reference::Key(subject));
    let groups = &mut item.groups;
    let place = groups.iter().position(|group| group.name == filled.group);
    let place = place.unwrap_or_else(|| {
        groups.push(Group {
            name: filled.group.clone(),
            fields: Vec::new(),
        });
        groups.len() - 1
    });
    let fields = &mut groups[place].fields;
    match fields.iter_mut().find(|(name, _)| *name == filled.field) {
        None => fields.push((filled.field.clone(), value)),
        Some((_, known)) if *known == Value::Null => *known = value,
        Some(_) => {}
    }
}

/// Finds the answered objects among the subjects, and says which are gone.
fn take_subjects(
    network: &Network,
    (answer, teller): (&Answer<'_>, Option<&Teller<'_>>),
    (found, answered): (&Found, &mut [bool]),
    reading: &mut Reading,
) {
    let is_single = answer.query.batch_max == 1;
    for place in &found.taken.objects {
        let object = &mut reading.objects[*place as usize];
        let subject = if is_single {
            (!answer.subjects.is_empty()).then_some(0)
        } else {
            subject_of(answer, &object.identity)
        };
        let Some(subject) = subject else {
            continue;
        };
        let (key, asked) = answer.subjects[subject];
        if let Some(stranger) = network.is_stranger(asked, &object.identity, teller) {
            let reason = stranger.reason().to_owned();
            let outcome = (key, OutcomeCode::Malformed, reason);
            reading.subject_outcomes.push(outcome);
            answered[subject] = true;
            continue;
        }
        object.known_as = Some(key);
        answered[subject] = true;
        if let Standing::Invalid(code) = object.standing {
            let reason = code.code().to_owned();
            reading.subject_outcomes.push((key, code, reason));
        }
    }
}

/// Says which subjects no select has found.
fn take_absent(answer: &Answer<'_>, answered: &[bool], reading: &mut Reading) {
    let reason = if answer.query.batch_max == 1 {
        "absent from answer"
    } else {
        "absent from batch"
    };
    for ((key, _), _) in answer
        .subjects
        .iter()
        .zip(answered)
        .filter(|(_, is_answered)| !**is_answered)
    {
        // Others know more of those than that they are not there.
        if answer.query.missing_query().is_some() {
            reading.absent.push(*key);
            continue;
        }
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
