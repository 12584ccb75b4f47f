//! A small HTTP server on loopback that answers as a test tells it to, and keeps what it was sent.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    /// Path and query, as they were sent.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub at: Instant,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    /// The pairs of the query, decoded.
    pub fn query(&self) -> Vec<(String, String)> {
        pairs(self.target.split_once('?').map_or("", |(_, query)| query))
    }

    /// The pairs of a form, decoded.
    pub fn form(&self) -> Vec<(String, String)> {
        pairs(&self.body)
    }
}

fn pairs(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes()).map(|(n, v)| (n.into_owned(), v.into_owned())).collect()
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    Answer {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// Closes the connection without a word.
    HangUp,
    /// Closes it in the middle of the answer.
    Half(String),
    /// Sends this, which need not be HTTP.
    Raw(String),
    Slow(Duration, Box<Reply>),
}

impl Reply {
    pub fn json(status: u16, body: Value) -> Self {
        Self::Answer { status, headers: Vec::new(), body: body.to_string() }
    }

    pub fn text(status: u16, body: &str) -> Self {
        Self::Answer { status, headers: Vec::new(), body: body.to_owned() }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

type Handler = dyn Fn(&Seen) -> Reply + Send + Sync;

/// Ends with its value.
pub struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    hang_ups: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn new(handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let (hang_ups, ends) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let handler: Arc<Handler> = Arc::new(handler);
        let thread = spawn({
            let (seen, hang_ups, ends) = (seen.clone(), hang_ups.clone(), ends.clone());
            move || {
                for stream in listener.incoming() {
                    if ends.load(Ordering::SeqCst) {
                        break;
                    }
                    let Ok(stream) = stream else { continue };
                    let less_one = |n: usize| n.checked_sub(1);
                    if hang_ups.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less_one).is_ok() {
                        continue;
                    }
                    let (seen, handler) = (seen.clone(), handler.clone());
                    spawn(move || drop(serve(stream, &seen, &*handler)));
                }
            }
        });
        Self { address, seen, hang_ups, ends, thread: Some(thread) }
    }

    /// One that answers with these in turn, and with the last one from then on.
    pub fn answering(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<_> = replies.into_iter().collect();
        let next = AtomicUsize::new(0);
        Self::new(move |_| {
            let at = next.fetch_add(1, Ordering::SeqCst);
            replies[at.min(replies.len() - 1)].clone()
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// So many of the next connections are closed before anything is read from them.
    pub fn hang_up_next(&self, times: usize) {
        self.hang_ups.store(times, Ordering::SeqCst);
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The only request that arrived.
    #[track_caller]
    pub fn only(&self) -> Seen {
        let mut seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.remove(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// An address at which nobody listens.
pub fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<Seen>>, handler: &Handler) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(request) = read(&mut reader)? else { return Ok(()) };
    seen.lock().unwrap().push(request.clone());
    answer(stream, handler(&request))
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Seen>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or("0", |(_, value)| value);
    let mut body = vec![0; length.parse().unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(Seen { method, target, headers, body, at: Instant::now() }))
}

fn answer(mut stream: TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::HangUp => Ok(()),
        Reply::Raw(text) => stream.write_all(text.as_bytes()),
        Reply::Half(body) => {
            let length = body.len() * 2;
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")
        }
        Reply::Slow(wait, then) => {
            sleep(wait);
            answer(stream, *then)
        }
        Reply::Answer { status, headers, body } => {
            let mut head =
                format!("HTTP/1.1 {status} told\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
            for (name, value) in headers {
                head += &format!("{name}: {value}\r\n");
            }
            stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
            stream.flush()
        }
    }
}
