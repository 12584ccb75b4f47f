//! Parse, run, map the result to an exit code; nothing else.

/// Rows are made in one thread and dropped in another, millions of them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    onefold::cli::main()
}
