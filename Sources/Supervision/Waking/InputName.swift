import Linux

/// The kind of an input, by which a message names it when input has arrived.
enum InputName: Hashable, Sendable {
  case listener(SocketName)
  case connection(local: SocketName, peer: SocketName)
  case datagrams(SocketName)
  case stdin
  case pipe(descriptor: Int32)
  case fileChange
  case fileAccess
  /// A request of io_uring has been completed.
  case completion
  case terminal
  case device(descriptor: Int32)
  /// A FIFO that the worker waits to open.
  case opening(path: String)
  case messageQueue

  init(_ input: WorkerInput) {
    switch input.open.kind {
    case .inotify:
      self = .fileChange
      return
    case .fanotify:
      self = .fileAccess
      return
    case .ring:
      self = .completion
      return
    case .device:
      self =
        input.duplicate.isTerminal ? .terminal : .device(descriptor: input.open.number)
      return
    case .socket, .pipe, .fifo: break
    }
    if input.open.number == 0, input.facts?.isListening != true {
      self = .stdin
    } else if let facts = input.facts {
      self =
        facts.isListening
        ? .listener(facts.local)
        : facts.hasOnePeer
          ? .connection(local: facts.local, peer: facts.peer) : .datagrams(facts.local)
    } else {
      self = .pipe(descriptor: input.open.number)
    }
  }

  /// True if other programs can give the worker new work at this input.
  var isForClients: Bool {
    switch self {
    // Nothing can be sent to a socket without an address, such as one that only writes to a log.
    case .datagrams(let address): address.isComplete
    case .listener(.path(let path)), .opening(let path): !Self.isForDebuggers(path)
    case .listener, .stdin, .terminal, .messageQueue: true
    case .connection, .pipe, .fileChange, .fileAccess, .completion, .device: false
    }
  }

  /// True for the socket at which every .NET runtime listens by default, and for the FIFO that it
  /// waits to open, both in $TMPDIR: `dotnet-diagnostic-PID-KEY-socket`,
  /// `clr-debug-pipe-PID-KEY-in`. A debugger gives the program no work.
  private static func isForDebuggers(_ path: String) -> Bool {
    path.contains("/dotnet-diagnostic-") || path.contains("/clr-debug-pipe-")
  }

  var listeningPort: UInt16? {
    if case .listener(.internet(_, let port)) = self { port } else { nil }
  }

  /// The reason for a wake when a peer has read, so that there is room for more of the worker's
  /// output.
  func sentenceOfRoom(served: Set<UInt16>) -> String {
    guard case .connection(.internet(_, let port), _) = self, served.contains(port) else {
      return "room for output on a connection"
    }
    return "room for output on a connection to port \(port)"
  }

  /// The reason for a wake by this input, as a clause.
  ///
  /// - Parameter served: the ports at which the worker listens. A connection to one of these was
  ///   made by a client, and any other by the worker itself.
  func sentence(isHangUp: Bool, served: Set<UInt16>) -> String {
    let what = isHangUp ? "a hang-up" : "data"
    switch self {
    case .listener(.internet(_, let port)): return "a connection on port \(port)"
    case .listener(let name): return "a connection on \(name)"
    case .connection(.internet(_, let port), _) where served.contains(port):
      return "\(what) on a connection to port \(port)"
    case .connection(.path(let path), _): return "\(what) on a connection to \(path)"
    case .connection(_, .none): return "\(what) on a nameless connection"
    case .connection(_, let peer): return "\(what) on its connection to \(peer)"
    case .datagrams(.internet(_, let port)): return "a datagram on port \(port)"
    case .datagrams(let name): return "a datagram on \(name)"
    case .stdin: return isHangUp ? "the end of stdin" : "data on stdin"
    case .pipe(let number): return "\(what) on a pipe (descriptor \(number))"
    case .fileChange: return "a change to a file that it watches"
    case .fileAccess: return "an access to a file that it watches"
    case .completion: return "a completed request of io_uring"
    case .terminal: return isHangUp ? "a hang-up of its terminal" : "input on its terminal"
    case .device(let number): return "\(what) on a device (descriptor \(number))"
    case .messageQueue: return "a message in its queue"
    case .opening(let path): return "the opening of the other end of \(path)"
    }
  }
}

extension SocketFacts.Traffic {
  /// True if data was received within the last `limit`, and nothing has been sent since.
  ///
  /// The kernel's clock for this ticks every 1 to 10 ms. When both times are equal, the order isn't
  /// known: a request and its answer can have the same time, and so can an answer and the next
  /// request. The client's acknowledgement shows the order. A request acknowledges the answer
  /// before it, and nothing follows it. An answer at the end is acknowledged by itself, usually
  /// some 40 ms later. If the client hasn't acknowledged it, or has done so at once, the request
  /// counts as unanswered for the whole `limit`. Otherwise a worker could sleep with a request that
  /// it has read, and its client would wait for ever.
  ///
  /// A new connection on which nothing was sent yet counts as unanswered for a moment: in some
  /// protocols the server speaks first.
  func isUnanswered(within limit: Duration) -> Bool {
    if received == 0 { return sent == 0 && sinceReceived <= Self.greeting }
    if sinceReceived >= limit { return false }
    // The time of sending begins with the connection's own.
    if sent == 0 { return true }
    if sinceReceived != sinceSent { return sinceReceived < sinceSent }
    return sinceReceived - sinceAcknowledged < Self.delayOfAcknowledgement
  }

  /// The minimum delay after which an acknowledgement can't have arrived with the data that was
  /// last received, between two ticks. It is longer than a tick, and shorter than the time for
  /// which a kernel delays an acknowledgement.
  static var delayOfAcknowledgement: Duration { .milliseconds(20) }

  /// The time that a server has to speak first.
  static var greeting: Duration { .milliseconds(10) }
}
