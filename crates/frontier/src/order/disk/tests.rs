use super::*;
use crate::random::Random;
use proptest::prelude::*;
use tempfile::TempDir;

const CRAWL: &str = "crawl 1";
/// Small, so that files are written and merged while a test runs.
const MEMORY_BYTES: u64 = 8 * MIB;
const LANES: [&str; 3] = ["a/host/posts", "b/host/posts", "b/host/profiles"];

type Model = BTreeMap<(LaneNumber, Place), State>;

fn open(folder: &TempDir) -> (DiskOrder, Found) {
    DiskOrder::open(folder.path(), CRAWL, MEMORY_BYTES).unwrap()
}

/// An index of nobody, built up to 0, and its lanes.
fn built(folder: &TempDir) -> (DiskOrder, Vec<LaneNumber>) {
    let (mut order, found) = open(folder);
    assert_eq!(found, Found::New);
    let lanes = LANES.iter().map(|name| order.lane(name).unwrap()).collect();
    order.begin_building().unwrap();
    order.finish(0).unwrap();
    (order, lanes)
}

fn place(due: i64, subject: i64) -> Place {
    (WorldTime(due), Key(subject))
}

fn state(length: usize) -> State {
    State::try_from(&[length as u8; 63][..length]).unwrap()
}

fn file(lane: LaneNumber, before: Option<i64>, due: i64, subject: i64) -> Change {
    Change::File {
        lane,
        before: before.map(WorldTime),
        entry: Entry {
            place: place(due, subject),
            state: state(subject.rem_euclid(64) as usize),
        },
    }
}

fn remove(lane: LaneNumber, due: i64, subject: i64) -> Change {
    Change::Remove {
        lane,
        place: place(due, subject),
    }
}

fn apply_to(model: &mut Model, changes: &[Change]) {
    for change in changes {
        match change {
            Change::File {
                lane,
                before,
                entry,
            } => {
                if let Some(before) = before {
                    model.remove(&(*lane, (*before, entry.place.1)));
                }
                model.insert((*lane, entry.place), entry.state.clone());
            }
            Change::Remove { lane, place } => {
                model.remove(&(*lane, *place));
            }
        }
    }
}

fn expected(model: &Model, lane: LaneNumber, after: Option<Place>, limit: usize) -> Vec<Entry> {
    let rows = model
        .iter()
        .filter(|((of, place), _)| *of == lane && after.is_none_or(|after| *place > after));
    let entries = rows.map(|((_, place), state)| Entry {
        place: *place,
        state: state.clone(),
    });
    entries.take(limit).collect()
}

/// Everything of every lane, or the first error.
fn contents(order: &DiskOrder) -> Result<Model, OrderError> {
    let mut model = Model::new();
    for (lane, _) in order.lanes() {
        for entry in order.after(lane, None, usize::MAX)? {
            model.insert((lane, entry.place), entry.state);
        }
    }
    Ok(model)
}

#[derive(Debug, Clone)]
enum Step {
    Apply(Vec<(usize, Option<i64>, i64, i64, bool)>),
    After(usize, Option<Place>, usize),
    Reopen,
    Rebuild,
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => -3_i64..8,
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let change = (
        0..LANES.len(),
        prop::option::of(number()),
        number(),
        number(),
        any::<bool>(),
    );
    let after = prop::option::of((number(), number()));
    prop_oneof![
        10 => prop::collection::vec(change, 0..12).prop_map(Step::Apply),
        10 => (0..LANES.len(), after, 0_usize..9).prop_map(|(lane, after, limit)| {
            Step::After(lane, after.map(|(due, subject)| place(due, subject)), limit)
        }),
        1 => Just(Step::Reopen),
        1 => Just(Step::Rebuild),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_order_on_disk_agrees_with_a_sorted_map(steps in prop::collection::vec(step(), 0..50)) {
        let folder = TempDir::new().unwrap();
        let (mut order, lanes) = built(&folder);
        let mut model = Model::new();
        let mut sequence = 0;
        for step in steps {
            match step {
                Step::Apply(changes) => {
                    let changes: Vec<_> = changes
                        .into_iter()
                        .map(|(lane, before, due, subject, is_filed)| {
                            if is_filed {
                                file(lanes[lane], before, due, subject)
                            } else {
                                remove(lanes[lane], due, subject)
                            }
                        })
                        .collect();
                    sequence += 1;
                    order.apply(&changes, sequence).unwrap();
                    apply_to(&mut model, &changes);
                }
                Step::After(lane, after, limit) => {
                    let entries = order.after(lanes[lane], after, limit).unwrap();
                    prop_assert_eq!(entries, expected(&model, lanes[lane], after, limit));
                }
                Step::Reopen => {
                    drop(order);
                    let (opened, found) = open(&folder);
                    prop_assert_eq!(found, Found::UpTo(sequence));
                    order = opened;
                }
                Step::Rebuild => {
                    order.begin_building().unwrap();
                    for ((lane, place), state) in model.iter().rev() {
                        let entry = Entry { place: *place, state: state.clone() };
                        order.build(*lane, [entry]).unwrap();
                    }
                    order.finish(sequence).unwrap();
                }
            }
            prop_assert_eq!(order.sequence(), Some(sequence));
            prop_assert_eq!(&contents(&order).unwrap(), &model);
        }
    }
}

/// A history of batches: what the store did, by sequence number.
struct History {
    built: Model,
    batches: Vec<(u64, Vec<Change>)>,
}

impl History {
    const BUILT_UP_TO: u64 = 10;

    /// What the index has to hold when it says that it is up to this number.
    fn up_to(&self, sequence: u64) -> Option<Model> {
        if sequence < Self::BUILT_UP_TO {
            return None;
        }
        let mut model = self.built.clone();
        for (up_to, changes) in &self.batches {
            if *up_to <= sequence {
                apply_to(&mut model, changes);
            }
        }
        Some(model)
    }

    /// Subjects that are built, then taken in order and filed again.
    fn write(
        folder: &TempDir,
        subjects: usize,
        batches: usize,
        mut each: impl FnMut(u64),
    ) -> (Self, DiskOrder) {
        let (mut order, _) = open(folder);
        let mut random = Random::new(subjects as u64);
        let lanes: Vec<_> = LANES.iter().map(|name| order.lane(name).unwrap()).collect();
        order.begin_building().unwrap();
        let mut history = Self {
            built: Model::new(),
            batches: Vec::new(),
        };
        for subject in 0..subjects {
            let lane = lanes[subject % LANES.len()];
            let place = place(random.below(1_000_000) as i64, subject as i64);
            let state = state(subject % 64);
            history.built.insert((lane, place), state.clone());
            order.build(lane, [Entry { place, state }]).unwrap();
        }
        order.finish(Self::BUILT_UP_TO).unwrap();
        let mut cursors = vec![None; lanes.len()];
        for batch in 0..batches {
            let turn = batch % lanes.len();
            let entries = order.after(lanes[turn], cursors[turn], 20).unwrap();
            cursors[turn] = entries.last().map(|entry| entry.place);
            let changes: Vec<_> = entries
                .into_iter()
                .map(|entry| {
                    let before = entry.place.0.micros();
                    let due = before + 1_000_000 + random.below(1_000_000) as i64;
                    file(lanes[turn], Some(before), due, entry.place.1.0)
                })
                .collect();
            let up_to = Self::BUILT_UP_TO + 3 * (batch as u64 + 1);
            order.apply(&changes, up_to).unwrap();
            history.batches.push((up_to, changes));
            each(up_to);
        }
        (history, order)
    }
}

/// The files of a folder, without the empty ends that journals are given ahead.
#[derive(Clone)]
struct Copy(Vec<(PathBuf, Vec<u8>, u64)>);

impl Copy {
    fn of(folder: &Path) -> Self {
        let mut files = Vec::new();
        Self::collect(folder, folder, &mut files);
        files.sort();
        Self(files)
    }

    fn collect(root: &Path, folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>, u64)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                Self::collect(root, &entry.path(), files);
                continue;
            }
            let mut bytes = std::fs::read(entry.path()).unwrap();
            let length = bytes.len() as u64;
            let used = bytes.iter().rposition(|byte| *byte != 0);
            bytes.truncate(used.map_or(0, |last| last + 1));
            let path = entry.path().strip_prefix(root).unwrap().to_owned();
            files.push((path, bytes, length));
        }
    }

    fn put(&self, folder: &Path) {
        remove_folder(&folder.join(INDEX_FOLDER)).unwrap();
        for (path, bytes, length) in &self.0 {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, bytes).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_len(*length).unwrap();
        }
    }
}

#[test]
fn a_killed_crawl_finds_the_order_as_its_number_says() {
    let (folder, copied) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = folder.path().to_owned();
    let mut snapshots = Vec::new();
    let (history, order) = History::write(&folder, 500, 40, |up_to| {
        if up_to % 4 == 0 {
            snapshots.push((up_to, Copy::of(&path)));
        }
    });
    for (up_to, copy) in snapshots {
        copy.put(copied.path());
        let (order, found) = open(&copied);
        assert_eq!(found, Found::UpTo(up_to));
        assert_eq!(contents(&order).unwrap(), history.up_to(up_to).unwrap());
    }
    drop(order);
}

#[test]
fn a_power_cut_leaves_an_earlier_state_whose_number_is_true() {
    let (folder, copied) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (history, order) = History::write(&folder, 500, 40, |_| {});
    let whole = Copy::of(folder.path());
    drop(order);
    let mut random = Random::new(9);
    let mut numbers = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let mut copy = whole.clone();
        // The end of the journal did not reach the disk.
        for (path, bytes, _) in &mut copy.0 {
            if path.extension().is_some_and(|extension| extension == "jnl") {
                bytes.truncate(random.below(bytes.len()));
            }
        }
        copy.put(copied.path());
        let (order, found) = open(&copied);
        match found {
            Found::UpTo(sequence) => {
                assert_eq!(contents(&order).unwrap(), history.up_to(sequence).unwrap());
                numbers.insert(sequence);
            }
            Found::Replaced(_) | Found::New => assert_eq!(order.sequence(), None),
        }
    }
    assert!(numbers.len() > 5, "{numbers:?}");
}

#[test]
fn much_that_was_written_and_merged_is_found_again() {
    let folder = TempDir::new().unwrap();
    let (mut order, lanes) = built(&folder);
    let mut random = Random::new(2);
    let mut model = Model::new();
    for sequence in 1..=80 {
        let mut changes: Vec<_> = (0..500)
            .map(|subject| file(lanes[0], None, random.below(1_000_000) as i64, subject))
            .collect();
        let first = model.keys().take(450).copied().collect::<Vec<_>>();
        changes.extend(
            first
                .into_iter()
                .map(|(lane, place)| Change::Remove { lane, place }),
        );
        order.apply(&changes, sequence).unwrap();
        apply_to(&mut model, &changes);
    }
    order.persist().unwrap();
    assert_eq!(contents(&order).unwrap(), model);
    assert!(order.entries_at_most() >= model.len());
    assert!(order.disk_bytes().unwrap() > 0);
    drop(order);
    let (order, found) = open(&folder);
    assert_eq!(found, Found::UpTo(80));
    assert_eq!(contents(&order).unwrap(), model);
}

#[test]
fn a_deleted_folder_is_built_anew() {
    let folder = TempDir::new().unwrap();
    drop(History::write(&folder, 50, 5, |_| {}));
    remove_folder(folder.path()).unwrap();
    let (mut order, found) = open(&folder);
    assert_eq!(found, Found::New);
    let lane = order.lane(LANES[0]).unwrap();
    assert!(matches!(
        order.after(lane, None, 1),
        Err(OrderError::Unfinished)
    ));
    assert!(matches!(order.apply(&[], 1), Err(OrderError::Unfinished)));
}

#[test]
fn an_old_copy_tells_its_old_number_and_has_what_was_there_then() {
    let folder = TempDir::new().unwrap();
    let (mut history, order) = History::write(&folder, 300, 10, |_| {});
    drop(order);
    let old = Copy::of(folder.path());
    let (mut order, found) = open(&folder);
    let Found::UpTo(old_number) = found else {
        panic!("{found:?}");
    };
    let lane = order.lane(LANES[0]).unwrap();
    let changes = vec![file(lane, None, -7, 1_000), file(lane, None, 5, 1_001)];
    order.apply(&changes, 900).unwrap();
    history.batches.push((900, changes));
    order.persist().unwrap();
    drop(order);
    let new = Copy::of(folder.path());
    for (copy, number) in [(old, old_number), (new, 900)] {
        copy.put(folder.path());
        let (order, found) = open(&folder);
        assert_eq!(found, Found::UpTo(number));
        assert_eq!(contents(&order).unwrap(), history.up_to(number).unwrap());
    }
}

#[test]
fn an_index_of_another_crawl_or_format_is_replaced() {
    let folder = TempDir::new().unwrap();
    drop(History::write(&folder, 50, 5, |_| {}));
    let (order, found) = DiskOrder::open(folder.path(), "crawl 2", MEMORY_BYTES).unwrap();
    assert_eq!(found, Found::Replaced(Replaced::OtherCrawl));
    assert_eq!((order.sequence(), order.lanes().count()), (None, 0));
    let files = order.files().unwrap();
    let format = [FORMAT + 1, b'x'];
    files
        .keyspace
        .insert(own_key(FORMAT_KEY, &[]), format)
        .unwrap();
    drop(order);
    let (_, found) = open(&folder);
    assert_eq!(found, Found::Replaced(Replaced::OtherFormat));
}

#[test]
fn a_half_built_index_is_built_anew() {
    let folder = TempDir::new().unwrap();
    let (mut order, lanes) = built(&folder);
    order.apply(&[file(lanes[0], None, 5, 1)], 3).unwrap();
    order.begin_building().unwrap();
    let entry = |subject| Entry {
        place: place(1, subject),
        state: State::default(),
    };
    order.build(lanes[0], (0..100).map(entry)).unwrap();
    assert!(matches!(
        order.after(lanes[0], None, 1),
        Err(OrderError::Unfinished)
    ));
    drop(order);
    let (mut order, found) = open(&folder);
    assert_eq!(found, Found::Replaced(Replaced::Unfinished));
    assert!(!folder.path().join(RUNS_FOLDER).exists());
    let lane = order.lane(LANES[1]).unwrap();
    order.begin_building().unwrap();
    order.build(lane, [entry(4), entry(2), entry(4)]).unwrap();
    order.finish(7).unwrap();
    assert_eq!(order.after(lane, None, 9).unwrap(), [entry(2), entry(4)]);
    drop(order);
    assert_eq!(open(&folder).1, Found::UpTo(7));
}

#[test]
fn what_another_program_uses_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let (history, order) = History::write(&folder, 50, 5, |_| {});
    let second = DiskOrder::open(folder.path(), "crawl 2", MEMORY_BYTES);
    assert!(matches!(second, Err(OrderError::InUse(_))));
    let number = order.sequence().unwrap();
    assert_eq!(contents(&order).unwrap(), history.up_to(number).unwrap());
}

#[test]
fn a_stale_entry_stays_until_somebody_removes_it() {
    let folder = TempDir::new().unwrap();
    let (mut order, lanes) = built(&folder);
    let lane = lanes[0];
    order.apply(&[file(lane, None, 5, 1)], 1).unwrap();
    order.apply(&[file(lane, None, 9, 1)], 2).unwrap();
    let places = |order: &DiskOrder| -> Vec<Place> {
        let entries = order.after(lane, None, 9).unwrap();
        entries.into_iter().map(|entry| entry.place).collect()
    };
    assert_eq!(places(&order), [place(5, 1), place(9, 1)]);
    order.apply(&[remove(lane, 5, 1)], 2).unwrap();
    assert_eq!(places(&order), [place(9, 1)]);
    let backwards = order.apply(&[], 1);
    assert!(matches!(
        backwards,
        Err(OrderError::Backwards {
            applied: 2,
            up_to: 1
        })
    ));
}

#[test]
fn the_low_water_mark_is_kept_and_gives_way_to_what_is_filed_before_it() {
    let folder = TempDir::new().unwrap();
    let (mut order, lanes) = built(&folder);
    let lane = lanes[1];
    let filed: Vec<_> = (0..20).map(|due| file(lane, None, due, 1)).collect();
    order.apply(&filed, 1).unwrap();
    let taken: Vec<_> = (0..10).map(|due| remove(lane, due, 1)).collect();
    order.apply(&taken, 2).unwrap();
    assert_eq!(order.lanes[&lane].head.low(), Some(place(9, 2)));
    order.apply(&[remove(lane, 10, 1)], 3).unwrap();
    drop(order);
    let (mut order, _) = open(&folder);
    assert_eq!(order.lanes[&lane].head.low(), Some(place(9, 2)));
    assert_eq!(order.after(lane, None, 1).unwrap()[0].place, place(11, 1));
    order.apply(&[file(lane, None, 2, 7)], 4).unwrap();
    assert_eq!(order.after(lane, None, 1).unwrap()[0].place, place(2, 7));
    let next = order.after(lane, Some(place(2, 7)), 1).unwrap();
    assert_eq!(next[0].place, place(11, 1));
    drop(order);
    let (order, _) = open(&folder);
    assert_eq!(order.lanes[&lane].head.low(), Some(place(2, 7)));
    assert_eq!(order.after(lane, None, 1).unwrap()[0].place, place(2, 7));
}

/// What was done to one file.
fn damage(bytes: &mut Vec<u8>, length: &mut u64, way: usize, random: &mut Random) {
    match way {
        0 if !bytes.is_empty() => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        1 => {
            bytes.truncate(random.below(bytes.len() + 1));
            *length = bytes.len() as u64;
        }
        2 => {
            let at = random.below(bytes.len() + 1);
            for byte in bytes.iter_mut().skip(at).take(64) {
                *byte = random.next_u64() as u8;
            }
        }
        _ => {
            bytes.clear();
            *length = 0;
        }
    }
}

/// Opens what may be broken, in a program of its own: it is replaced, or says so, or holds what its number says.
/// Garbage may end the program, but not for good.
fn open_damaged(folder: &TempDir, history: &History) -> &'static str {
    for _ in 0..=OPENINGS_MAX {
        let program = std::env::current_exe().unwrap();
        let ended = std::process::Command::new(program)
            .args(["--exact", OPENER, "--test-threads=1"])
            .env(OPENER_FOLDER, folder.path())
            .output()
            .unwrap();
        if ended.status.success() {
            let told = std::fs::read_to_string(folder.path().join("told")).unwrap();
            let Some((sequence, entries)) = told.split_once('\n') else {
                return if told == "replaced" {
                    "replaced"
                } else {
                    "broken on reading"
                };
            };
            let model = history.up_to(sequence.parse().unwrap()).unwrap();
            assert!(entries == format!("{model:?}"), "up to {sequence}");
            return "as its number says";
        }
        // Aborted rather than failed.
        assert_eq!(ended.status.code(), None, "{ended:?}");
        println!("garbage has ended the program");
    }
    panic!("garbage ends the program forever");
}

const OPENER: &str = "order::disk::tests::opens_what_another_test_has_broken";
const OPENER_FOLDER: &str = "ORDER_TEST_FOLDER";

#[test]
fn only_what_is_the_orders_own_is_removed() {
    let folder = TempDir::new().unwrap();
    let (lane, other) = (folder.path().join("lane"), folder.path().join("mine"));
    drop(DiskOrder::open(&lane, CRAWL, MEMORY_BYTES).unwrap());
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("notes.txt"), "mine").unwrap();
    remove_within(folder.path());
    assert!(!lane.exists() && other.join("notes.txt").exists());
    std::fs::remove_dir_all(&other).unwrap();
    remove_within(folder.path());
    assert!(!folder.path().exists());
}

/// Other tests run it in a process of its own, with a folder that they have broken; alone it opens a sound
/// one.
#[test]
fn opens_what_another_test_has_broken() {
    let Some(folder) = std::env::var_os(OPENER_FOLDER) else {
        let folder = TempDir::new().unwrap();
        drop(History::write(&folder, 50, 5, |_| {}));
        open_and_tell(folder.path());
        let told = std::fs::read_to_string(folder.path().join("told")).unwrap();
        assert!(told.contains('\n'), "{told}");
        return;
    };
    open_and_tell(&PathBuf::from(folder));
}

fn open_and_tell(folder: &Path) {
    let opened = match DiskOrder::open(folder, CRAWL, MEMORY_BYTES) {
        Err(OrderError::Broken { .. } | OrderError::Io { .. }) => {
            return std::fs::write(folder.join("told"), "refused").unwrap();
        }
        opened => opened.unwrap(),
    };
    let (mut order, found) = opened;
    let told = match (found, contents(&order)) {
        (Found::UpTo(sequence), Ok(model)) => {
            let lane = order.lane(LANES[0]).unwrap();
            let applied = order.apply(&[file(lane, None, 1, 1)], sequence + 1);
            assert!(matches!(applied, Ok(()) | Err(OrderError::Broken { .. })));
            format!("{sequence}\n{model:?}")
        }
        (Found::UpTo(_), Err(OrderError::Broken { .. })) => "broken".to_owned(),
        (Found::UpTo(_), Err(error)) => panic!("{error}"),
        (Found::New | Found::Replaced(_), _) => "replaced".to_owned(),
    };
    std::fs::write(folder.join("told"), told).unwrap();
}

#[test]
fn what_ends_the_program_twice_is_replaced() {
    let folder = TempDir::new().unwrap();
    drop(History::write(&folder, 50, 5, |_| {}));
    let note = folder.path().join(OPENING_NOTE);
    assert!(!note.exists());
    // As after a program that was ended while it opened the index.
    std::fs::write(&note, ".").unwrap();
    assert!(matches!(open(&folder).1, Found::UpTo(_)));
    std::fs::write(&note, "..").unwrap();
    assert!(matches!(
        open(&folder).1,
        Found::Replaced(Replaced::Unreadable(_))
    ));
    assert!(!note.exists());
}

#[test]
fn garbage_is_replaced_or_reported_and_never_believed() {
    let folder = TempDir::new().unwrap();
    let (history, order) = History::write(&folder, 600, 30, |_| {});
    drop(order);
    let whole = Copy::of(folder.path());
    let mut random = Random::new(5);
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..rounds(3) {
        for file in 0..whole.0.len() {
            for way in 0..4 {
                if way == 3 && round > 0 {
                    continue;
                }
                let mut copy = whole.clone();
                let (path, bytes, length) = &mut copy.0[file];
                damage(bytes, length, way, &mut random);
                println!("{round} {way} {}", path.display());
                copy.put(folder.path());
                let outcome = open_damaged(&folder, &history);
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
    }
    println!("{outcomes:?}");
    assert!(outcomes.contains_key("replaced"));
}

#[test]
fn no_flipped_bit_of_the_journal_loses_a_change_unnoticed() {
    let folder = TempDir::new().unwrap();
    let (mut history, mut order) = History::write(&folder, 9, 8, |_| {});
    for (name, up_to) in [("late/host/posts", 100), ("later/host/posts", 101)] {
        let lane = order.lane(name).unwrap();
        let changes = vec![file(lane, None, 5, 1)];
        order.apply(&changes, up_to).unwrap();
        history.batches.push((up_to, changes));
    }
    drop(order);
    let whole = Copy::of(folder.path());
    let journal = whole.0.iter().position(|(path, bytes, _)| {
        path.extension().is_some_and(|extension| extension == "jnl") && !bytes.is_empty()
    });
    let journal = journal.unwrap();
    let length = whole.0[journal].1.len();
    // All bytes take a minute; of every place within a batch's records some are tried.
    let stride = rounds(length / 150);
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for at in (0..length).step_by(stride) {
        let mut copy = whole.clone();
        copy.0[journal].1[at] ^= 1 << (at % 8);
        copy.put(folder.path());
        *outcomes.entry(open_damaged(&folder, &history)).or_default() += 1;
    }
    println!("{length} bytes: {outcomes:?}");
}

#[test]
fn files_that_are_missing_are_replaced_or_reported() {
    let folder = TempDir::new().unwrap();
    let (history, order) = History::write(&folder, 500, 10, |_| {});
    drop(order);
    let whole = Copy::of(folder.path());
    for file in 0..whole.0.len() {
        let mut copy = whole.clone();
        let (path, ..) = copy.0.remove(file);
        copy.put(folder.path());
        println!("{} {}", path.display(), open_damaged(&folder, &history));
    }
}

/// As many as said, or as the environment says for a longer search.
fn rounds(usual: usize) -> usize {
    let asked = std::env::var("ORDER_GARBAGE_ROUNDS").ok();
    asked
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(usual)
}
