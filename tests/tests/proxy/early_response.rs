//! A server responds before it has read the request, and the client does not read yet. The response goes to a temporary
//! file, so that the server is free.
//!
//! Source: nginx documentation, `proxy_max_temp_file_size`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;

use firstbyte_tests::Server;
use firstbyte_tests::client::request;
use firstbyte_tests::wait::DEADLINE;

/// Bytes of the response: more than the sockets of both connections take.
const RESPONSE_BYTES: usize = 64 << 20;
/// Bytes of the request's body, likewise.
const BODY_BYTES: usize = 32 << 20;

/// Reads the head of a request and no more, then sends a response. An error if the response is not taken in time.
fn answer(listener: &TcpListener) -> std::io::Result<TcpStream> {
    let (mut socket, _) = listener.accept()?;
    socket.set_read_timeout(Some(DEADLINE))?;
    socket.set_write_timeout(Some(DEADLINE))?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    write!(
        socket,
        "HTTP/1.1 200 OK\r\nContent-Length: {RESPONSE_BYTES}\r\n\r\n"
    )?;
    let piece = vec![b'a'; 1 << 20];
    for _ in 0..RESPONSE_BYTES / piece.len() {
        socket.write_all(&piece)?;
    }
    Ok(socket)
}

#[test]
fn a_response_goes_to_a_file_while_the_request_is_still_being_sent() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let (told, finished) = channel();
    thread::spawn(move || told.send(answer(&listener)));
    let server = Server::http(&format!(
        "client_max_body_size 0; proxy_temp_path %%DIR%%/proxy;
         server {{ listen 127.0.0.1:%%PORT%%; location / {{ proxy_pass http://{address}; }} }}"
    ))
    .start();
    let mut client = TcpStream::connect(("127.0.0.1", server.port())).expect("it accepts");
    client
        .set_read_timeout(Some(DEADLINE))
        .expect("it is not zero");
    let length = format!("Content-Length: {BODY_BYTES}");
    let head = request("POST", "/", &[&length, "Connection: close"]);
    client.write_all(head.as_bytes()).expect("it reads");
    client
        .write_all(&vec![b'b'; BODY_BYTES])
        .expect("it takes the body up");
    let answered = finished.recv_timeout(DEADLINE * 2);
    let socket = answered
        .expect("the server's thread ends")
        .expect("the response is taken though the client does not read");
    let mut response = Vec::new();
    client.read_to_end(&mut response).expect("it answers");
    drop(socket);
    assert!(response.starts_with(b"HTTP/1.1 200 "));
    let from = response.windows(4).position(|part| part == b"\r\n\r\n");
    let body = &response[from.expect("a head") + 4..];
    assert_eq!(body.len(), RESPONSE_BYTES);
    assert!(body.iter().all(|byte| *byte == b'a'));
}
