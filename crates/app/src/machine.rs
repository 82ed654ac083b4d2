//! What the operating system grants: disk space, open files, writable folders, randomness, a terminal
//! that does not show what is typed. The only file that knows rustix and getrandom.

use rustix::process::Resource;
use rustix::termios::{LocalModes, OptionalActions};
use std::fmt::Write as _;
use std::path::Path;

/// Free bytes on the disk that holds the path, for those who are not root.
pub(crate) fn free_bytes(path: &Path) -> std::io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// How many files this process may have open; `None` if as many as it likes.
pub(crate) fn open_files_max() -> Option<u64> {
    rustix::process::getrlimit(Resource::Nofile).current
}

/// Lets this process have as many files open as the system allows it: a server has one for everybody who looks.
pub(crate) fn raise_open_files() {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it is not allowed, fewer can look at once.
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

/// How far behind others a thread stands that has stepped back, as `nice` counts it.
const STEP_BACK: i32 = 10;

/// Lets this thread, and those that it starts, work only when others of this machine leave time for it.
pub(crate) fn step_back() {
    // Where it is not allowed, it works beside the others.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), STEP_BACK);
}

/// Whether a file can be made in the folder: tried, because permissions do not tell of quotas and
/// read-only disks. What was made is removed.
pub(crate) fn try_to_write(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".kittiwake-doctor-{}", std::process::id()));
    let made = std::fs::File::create_new(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"x"));
    let removed = std::fs::remove_file(&path);
    made.and(removed)
}

/// Whether the user may make files and folders in the folder, as far as permissions tell.
pub(crate) fn may_write(folder: &Path) -> std::io::Result<()> {
    let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    Ok(rustix::fs::access(folder, wanted)?)
}

/// How many characters a line of the terminal has; `None` where there is no terminal.
pub(crate) fn terminal_columns(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// Bytes that nobody can guess. A machine that has none cannot keep secrets at all.
pub(crate) fn random<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    #[expect(
        clippy::expect_used,
        reason = "going on without would give secrets away"
    )]
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// A word that nobody can guess and no other log-in or request has.
pub(crate) fn random_word() -> String {
    let bytes: [u8; 16] = random();
    bytes.iter().fold(String::new(), |mut word, byte| {
        let _ = write!(word, "{byte:02x}");
        word
    })
}

/// Does something while the terminal does not show what is typed.
pub(crate) fn without_echo<T>(
    terminal: impl std::os::fd::AsFd,
    action: impl FnOnce() -> T,
) -> std::io::Result<T> {
    let before = rustix::termios::tcgetattr(&terminal)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    rustix::termios::tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    let done = action();
    rustix::termios::tcsetattr(&terminal, OptionalActions::Flush, &before)?;
    Ok(done)
}
