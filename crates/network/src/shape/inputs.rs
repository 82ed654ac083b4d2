//! What expressions look at of an object, cut out of its bytes: no expression is given more than it reads.

use super::Slots;
use crate::json;

/// A key that an expression looks at.
#[derive(Debug)]
pub(crate) struct Input {
    /// The key as JSON writes it.
    quoted: String,
    of: InputOf,
}

/// How much of what stands under a key is looked at.
#[derive(Debug)]
enum InputOf {
    /// All of it, which is in this slot.
    Slot(u32),
    /// Some keys of it.
    Keys(Vec<Input>),
}

/// Adds a way that an expression goes into its object, unless all of what lies on it is looked at.
pub(super) fn add_input(inputs: &mut Vec<Input>, keys: &[String], slot: u32) {
    let Some((key, rest)) = keys.split_first() else {
        return;
    };
    let quoted = json::quote(key);
    let known = inputs.iter_mut().find(|input| input.quoted == quoted);
    match (known.map(|input| &mut input.of), rest) {
        (Some(InputOf::Slot(_)), _) | (Some(_), []) => {}
        (Some(InputOf::Keys(inner)), rest) => add_input(inner, rest, slot),
        (None, []) => inputs.push(Input {
            quoted,
            of: InputOf::Slot(slot),
        }),
        (None, rest) => {
            let mut inner = Vec::new();
            add_input(&mut inner, rest, slot);
            let of = InputOf::Keys(inner);
            inputs.push(Input { quoted, of });
        }
    }
}

/// What an expression looks at, as an object of its own; `None` when nothing of it is there. An
/// expression of constants alone looks at nothing and is always observed.
pub(super) fn gather(inputs: &[Input], slots: &Slots<'_>) -> Option<String> {
    let mut text = String::new();
    let is_there = push_inputs(inputs, slots, &mut text);
    (is_there || inputs.is_empty()).then_some(text)
}

/// Writes those of some keys that are there; whether there is one.
fn push_inputs(inputs: &[Input], slots: &Slots<'_>, text: &mut String) -> bool {
    let mut is_there = false;
    text.push('{');
    for input in inputs {
        let before = text.len();
        if is_there {
            text.push(',');
        }
        text.push_str(&input.quoted);
        text.push(':');
        let is_written = match &input.of {
            InputOf::Slot(slot) => slots[*slot as usize]
                .map(|raw| text.push_str(raw))
                .is_some(),
            InputOf::Keys(inner) => push_inputs(inner, slots, text),
        };
        if is_written {
            is_there = true;
        } else {
            text.truncate(before);
        }
    }
    text.push('}');
    is_there
}
