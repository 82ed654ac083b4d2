//! Connections that can misbehave: the one place between HTTP and the socket.
//!
//! A call that is to meet a transport fault leaves a script with its connection. When the answer
//! is about to be written, the script is played instead, byte by byte as it says.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;

use crate::stay::Stay;

/// What is put on the wire instead of an answer.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) steps: VecDeque<Step>,
    pub(crate) ending: Ending,
    /// The call counts until all of it was played.
    pub(crate) stay: Option<Stay>,
}

#[derive(Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The connection serves further calls.
    KeepOpen,
    Close,
    /// The other side is told that the connection is broken.
    Reset,
}

/// The caller's address, and a way to leave a script with the caller's connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    orders: Arc<Mutex<Option<Script>>>,
}

impl Peer {
    /// The next thing that is written to the connection is this.
    pub(crate) fn play(&self, script: Script) {
        *self.orders.lock().unwrap_or_else(PoisonError::into_inner) = Some(script);
    }
}

impl Connected<IncomingStream<'_, WireListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, WireListener>) -> Self {
        Self {
            address: *stream.remote_addr(),
            orders: Arc::clone(&stream.io().orders),
        }
    }
}

#[derive(Debug)]
pub(crate) struct WireListener(pub(crate) TcpListener);

impl Listener for WireListener {
    type Io = Wire;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Wire, SocketAddr) {
        let (socket, address) = Listener::accept(&mut self.0).await;
        // Answers are small; waiting to fill a packet would cost more than everything else. A socket
        // that refuses the option still works.
        drop(socket.set_nodelay(true));
        let wire = Wire {
            socket,
            orders: Arc::default(),
            playing: None,
        };
        (wire, address)
    }

    fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local_addr()
    }
}

#[derive(Debug)]
pub(crate) struct Wire {
    socket: TcpStream,
    orders: Arc<Mutex<Option<Script>>>,
    playing: Option<Playing>,
}

/// A script and how far it is.
#[derive(Debug)]
struct Playing {
    script: Script,
    /// How much of the step at hand has been sent.
    sent: usize,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    /// Plays a script that was left here, to its end. Ready with false if there is none.
    fn poll_play(&mut self, context: &mut Context<'_>) -> Poll<Result<bool>> {
        if self.playing.is_none() {
            let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
            self.playing = orders.take().map(|script| Playing {
                script,
                sent: 0,
                sleep: None,
            });
        }
        let Some(playing) = &mut self.playing else {
            return Poll::Ready(Ok(false));
        };
        while let Some(step) = playing.script.steps.front() {
            match step {
                Step::Send(bytes) if playing.sent < bytes.len() => {
                    let socket = Pin::new(&mut self.socket);
                    let left = &bytes[playing.sent..];
                    playing.sent += ready!(socket.poll_write(context, left))?;
                    continue;
                }
                Step::Send(_) => {}
                Step::Wait(span) => {
                    let sleep = playing
                        .sleep
                        .get_or_insert_with(|| Box::pin(tokio::time::sleep(*span)));
                    ready!(sleep.as_mut().poll(context));
                }
            }
            playing.script.steps.pop_front();
            playing.sent = 0;
            playing.sleep = None;
        }
        let ending = playing.script.ending;
        self.playing = None;
        if ending == Ending::Reset {
            // A socket that is closed without lingering resets the connection.
            self.socket.set_zero_linger()?;
            return Poll::Ready(Err(Error::from(ErrorKind::ConnectionReset)));
        }
        Poll::Ready(Ok(true))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<Result<usize>> {
        // The answer that a script stands for is empty and comes in one piece.
        if ready!(self.poll_play(context))? {
            return Poll::Ready(Ok(buffer.len()));
        }
        Pin::new(&mut self.socket).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        if ready!(self.poll_play(context))? {
            let length = buffers.iter().map(|buffer| buffer.len()).sum();
            return Poll::Ready(Ok(length));
        }
        Pin::new(&mut self.socket).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
