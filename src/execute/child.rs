//! A command that is run in a process group of its own: what it prints is passed on as it comes and kept,
//! and all that belongs to it can be signalled or killed at once.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::core::output::{Capture, Output, Stream};
use crate::error::{Error, Result};

/// Takes each piece of output as it comes.
pub type Echo = Arc<dyn Fn(Stream, &[u8]) + Send + Sync>;

/// Once the command itself has ended, its output is over when nothing came for so long, though some process
/// that it left behind may still hold the stream open.
const SILENCE: Duration = Duration::from_secs(2);

/// A command that runs.
pub struct Running {
    process: tokio::process::Child,
    pub group: Group,
    stdout: Reader,
    stderr: Reader,
}

/// The process group of a command.
#[derive(Clone, Copy, Debug)]
pub struct Group(Option<Pid>);

impl Group {
    /// Sends a signal to all of the group; one that has ended hears nothing.
    pub fn signal(self, signal: Signal) {
        if let Group(Some(group)) = self {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Ends all of the group at once.
    pub fn kill(self) {
        self.signal(Signal::KILL);
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(u8),
    /// By a signal, its number.
    Killed(i32),
}

/// Whether a program can be found and may be run, as the system itself would look for it.
pub fn is_runnable(program: &OsString) -> bool {
    let may_run = |path: &Path| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if Path::new(program).components().count() > 1 || program.as_encoded_bytes().contains(&b'/') {
        return may_run(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    !program.is_empty() && std::env::split_paths(&path).any(|folder| may_run(&folder.join(program)))
}

/// Starts a command in a group of its own. Its stdin is what is given, else empty: what it might read
/// from elsewhere would change what it does unseen.
///
/// On Linux it dies with this process, however that ends; what it has itself started does not.
///
/// # Errors
/// Failure, where it cannot be started: then nothing of it ran.
pub fn start(mut command: Command, stdin: Option<Vec<u8>>, echo: &Echo) -> Result<Running> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |what: &dyn std::fmt::Display| Error::failure(format!("{name} cannot be run: {what}"));
    command
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    die_with_us(&mut command);
    let mut process = tokio::process::Command::from(command).spawn().map_err(|e| failed(&e))?;
    let group = Group(process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let streams = || -> std::io::Result<_> {
        let gone = || std::io::Error::other("a stream is missing");
        let stdin = match stdin {
            Some(bytes) => Some((process.stdin.take().ok_or_else(gone)?.into_owned_fd()?, bytes)),
            None => None,
        };
        let stdout = process.stdout.take().ok_or_else(gone)?.into_owned_fd()?;
        let stderr = process.stderr.take().ok_or_else(gone)?.into_owned_fd()?;
        Ok((stdin, stdout, stderr))
    };
    let (stdin, stdout, stderr) = streams().map_err(|e| {
        group.kill();
        failed(&e)
    })?;
    if let Some((fd, bytes)) = stdin {
        // A command that does not read its input is no failure.
        std::thread::spawn(move || std::fs::File::from(fd).write_all(&bytes));
    }
    Ok(Running {
        process,
        group,
        stdout: Reader::start(stdout, Stream::Stdout, echo.clone()),
        stderr: Reader::start(stderr, Stream::Stderr, echo.clone()),
    })
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn die_with_us(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    use rustix::process::{getpid, getppid, set_parent_process_death_signal};

    let us = getpid();
    // SAFETY: between fork and exec only two system calls are made, and nothing is allocated or locked.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // We may have died before that was said.
            if getppid() == Some(us) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_us(_: &mut Command) {}

impl Running {
    /// Waits until it has ended and its output is over. Where a signal ended it, what is left of its group
    /// is killed: nothing of it goes on unseen.
    ///
    /// # Errors
    /// Failure, where the system does not say how it ended.
    pub async fn end(&mut self) -> Result<Ended> {
        let status = self
            .process
            .wait()
            .await
            .map_err(|e| Error::failure(format!("it is not known how the command ended: {e}")))?;
        let ended = how(status);
        if matches!(ended, Ended::Killed(_)) {
            self.group.kill();
        }
        let since = Instant::now();
        while !(self.stdout.is_over(since) && self.stderr.is_over(since)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(ended)
    }

    /// What it printed until now.
    pub fn output(&self) -> Output {
        Output { stdout: self.stdout.take().kept(), stderr: self.stderr.take().kept() }
    }
}

fn how(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        // The system gives the lowest eight bits.
        (Some(code), _) => Ended::Exited(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        (None, signal) => Ended::Killed(signal.unwrap_or_default()),
    }
}

/// A thread that reads a stream: a reader of ours that is slow then holds up nothing but the command.
struct Reader(Arc<Mutex<Reading>>);

struct Reading {
    capture: Capture,
    is_over: bool,
    /// Since when nothing came; `None` while a piece is being passed on.
    silent_since: Option<Instant>,
}

impl Reader {
    fn start(fd: OwnedFd, stream: Stream, echo: Echo) -> Self {
        let reading =
            Reading { capture: Capture::default(), is_over: false, silent_since: Some(Instant::now()) };
        let shared = Arc::new(Mutex::new(reading));
        let ours = shared.clone();
        std::thread::spawn(move || {
            let mut file = std::fs::File::from(fd);
            let mut piece = vec![0; 64 * 1024];
            loop {
                match file.read(&mut piece) {
                    Ok(0) => break,
                    Ok(length) => {
                        with(&ours, |reading| {
                            reading.capture.push(&piece[..length]);
                            reading.silent_since = None;
                        });
                        echo(stream, &piece[..length]);
                        with(&ours, |reading| reading.silent_since = Some(Instant::now()));
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            with(&ours, |reading| reading.is_over = true);
        });
        Self(shared)
    }

    /// Whether the stream was closed, or nothing came for long after the command had ended.
    fn is_over(&self, ended: Instant) -> bool {
        with(&self.0, |r| {
            r.is_over || r.silent_since.is_some_and(|since| since.max(ended).elapsed() >= SILENCE)
        })
    }

    fn take(&self) -> Capture {
        with(&self.0, |reading| std::mem::take(&mut reading.capture))
    }
}

fn with<T>(reading: &Mutex<Reading>, act: impl FnOnce(&mut Reading) -> T) -> T {
    act(&mut reading.lock().unwrap_or_else(PoisonError::into_inner))
}
