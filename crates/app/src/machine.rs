//! What the operating system grants: disk space, open files, writable folders. The only file that
//! knows rustix.

use rustix::process::Resource;
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
