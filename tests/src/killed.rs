//! The end of a server by KILL.
//!
//! The first thread of a killed process may be a zombie while other threads still end. Its sockets are open until the last
//! of them has ended. So the ports are checked, too.

use crate::port::is_free;
use crate::process;
use crate::server::Server;
use crate::wait::wait_until;
use rustix::process::Signal;

impl Server {
    /// Kills the supervisor and its workers, and waits until [`Server::launch`] can bind their port.
    ///
    /// # Panics
    /// If they have not ended by the deadline.
    #[track_caller]
    pub fn kill(&mut self) {
        let workers = self.workers();
        self.signal(Signal::KILL);
        for worker in &workers {
            process::signal(*worker, Signal::KILL);
        }
        self.wait_for_exit();
        wait_until("the workers have ended", || {
            !workers.iter().any(|worker| process::is_alive(*worker))
        });
        wait_until("the port is free", || is_free(self.port()));
    }
}
