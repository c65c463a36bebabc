import Glibc

/// Serves standard input and HTTP on one thread, one command after another.
struct Server {
  private static let maxClients = 16
  /// The maximum length of a line of standard input, in bytes.
  private static let maxLine = 65536

  private struct Client {
    let descriptor: Int32
    var received: [UInt8] = []
  }

  private let app: App
  private let routes: Routes
  private let listener: Listener?
  private var clients: [Client] = []
  private var typed: [UInt8] = []
  private var isTyping = true
  private var isOver = false

  init(app: App, album: Album, listener: Listener?) {
    self.app = app
    self.listener = listener
    routes = Routes(app: app, album: album)
  }

  /// Runs until `quit`, a signal, or the end of all sources of commands.
  mutating func run() async {
    while !isOver, isTyping || listener != nil {
      var waiting = descriptors()
      guard Signals.wait(&waiting) else { break }
      for ready in waiting where ready.revents != 0 && !isOver {
        switch ready.fd {
        case 0: await readTyped()
        case listener?.descriptor: admit()
        default: await serve(ready.fd)
        }
      }
    }
    for client in clients { close(client.descriptor) }
  }

  private func descriptors() -> [pollfd] {
    var all = clients.map(\.descriptor)
    if isTyping { all.append(0) }
    // Other clients wait in the socket's queue.
    if let listener, clients.count < Self.maxClients { all.append(listener.descriptor) }
    return all.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
  }

  // MARK: stdin

  private mutating func readTyped() async {
    let chunk = Self.read(0)
    typed += chunk ?? []
    while !isOver, let end = typed.firstIndex(of: 10) {
      let line = String(decoding: typed[..<end], as: UTF8.self)
      typed.removeFirst(end + 1)
      await obey(line)
    }
    if chunk == [], !typed.isEmpty, !isOver { await obey(String(decoding: typed, as: UTF8.self)) }
    if chunk == [] || typed.count > Self.maxLine { isTyping = false }
  }

  private mutating func obey(_ line: String) async {
    guard line.contains(where: { $0 != " " && $0 != "\t" && $0 != "\r" }) else { return }
    let text: String
    do {
      let command = try Command(line: line)
      switch await app.perform(command) {
      case .done(let answer): text = answer
      case .refused(let reason), .missing(let reason), .failed(let reason): text = "no: \(reason)"
      }
      isOver = command == .quit
    } catch {
      text = "no: \(error)"
    }
    File.writeAll(Array((text + "\n").utf8), to: 1)
  }

  // MARK: HTTP

  private mutating func admit() {
    if let descriptor = listener?.accept() { clients.append(Client(descriptor: descriptor)) }
  }

  private mutating func serve(_ descriptor: Int32) async {
    guard let index = clients.firstIndex(where: { $0.descriptor == descriptor }) else { return }
    guard let chunk = Self.read(descriptor) else { return }
    clients[index].received += chunk
    var keepsOpen = !chunk.isEmpty
    do {
      while keepsOpen, !isOver,
        let request = try HTTPRequest.removeFirst(from: &clients[index].received)
      {
        let (response, isLast) = await routes.answer(request)
        isOver = isLast
        keepsOpen = request.keepsOpen && !isLast
        let bytes = response.bytes(keepsOpen: keepsOpen)
        if !File.writeAll(bytes, to: descriptor) { keepsOpen = false }
      }
    } catch {
      keepsOpen = false
      File.writeAll(Self.response(to: error).bytes(keepsOpen: false), to: descriptor)
    }
    if !keepsOpen {
      close(descriptor)
      clients.remove(at: index)
    }
  }

  private static func response(to problem: HTTPRequest.Problem) -> HTTPResponse {
    switch problem {
    case .malformed: HTTPResponse(400, "that isn't HTTP")
    case .tooLarge: HTTPResponse(413, "that is too much")
    case .unsupported: HTTPResponse(501, "only with a Content-Length")
    }
  }

  /// Reads bytes. The result is empty at the end, and `nil` if nothing could be read.
  private static func read(_ descriptor: Int32) -> [UInt8]? {
    var count = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: 16384) { buffer, length in
      count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      length = max(0, count)
    }
    return count < 0 && (errno == EINTR || errno == EAGAIN) ? nil : bytes
  }
}
