//! Tests of sockets on loopback.

use super::*;

#[test]
fn accept_names_the_peer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    listener.set_nonblocking(true).expect("non-blocking");
    let none = accept(&listener).expect_err("nobody waits");
    assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
    let address = listener.local_addr().expect("address");
    let client = std::net::TcpStream::connect(address).expect("connect");
    let (socket, peer) = accept(&listener).expect("accept");
    assert_eq!(peer, Some(client.local_addr().expect("address")));
    assert_eq!(local_addr(&socket).expect("address"), Some(address));
    set_nodelay(&socket, true).expect("TCP");
    assert!(so_error(&socket).expect("a socket").is_none());
    let mut buffer = [0; 8];
    let idle = receive(&socket, &mut buffer).expect_err("nothing came");
    assert_eq!(idle.kind(), io::ErrorKind::WouldBlock);
    shutdown_write(&socket).expect("connected");
    set_linger_reset(&socket).expect("a stream");
}
