import WorkerKit

/// A travel journal, as in the talks: what a worker looks like that sheds well, and, with `--broken`,
/// what happens to one that doesn't. See README.md here.
@main struct Breadcrumbs {
  static func main() async {
    if CommandLine.arguments.dropFirst() == ["--help"] { return say(Arguments.usage) }
    let arguments: Arguments
    let journal: Journal
    do {
      arguments = try Arguments(CommandLine.arguments.dropFirst())
      journal = try Journal(directory: arguments.data, isBroken: arguments.isBroken)
    } catch { quit(saying: "\(error)", code: 64) }

    let (requests, listening) = inputs(arguments)
    // The broken one never asks to be told of anything.
    if !arguments.isBroken { Worker.shared.connect(delegate: journal) }
    await journal.restore()
    if let listening { say("listening at http://127.0.0.1:\(listening)") }
    Worker.shared.ready()
    for await request in requests {
      request.answer(await journal.perform(request.line))
      if request.line == "quit" { break }
    }
    await journal.save()
  }

  /// Commands of both kinds, one after the other; and the port, where there is one.
  private static func inputs(_ arguments: Arguments) -> (AsyncStream<Request>, UInt16?) {
    let (requests, continuation) = AsyncStream.makeStream(of: Request.self)
    var port: UInt16?
    do throws(ServerError) {
      if let socket = try ServerSocket.wanted(arguments.port) {
        port = socket.port
        HTTPServer(socket, requests: continuation).start()
      }
    } catch { quit(saying: "\(error)", code: 74) }
    // A server's standard input is usually empty; its end is no reason to end.
    readCommands(requests: continuation, endsAll: port == nil)
    return (requests, port)
  }
}
