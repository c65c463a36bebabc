/// Why it can't start, as a sentence.
struct UsageError: Error, CustomStringConvertible {
  let description: String
  init(_ what: String) { description = "breadcrumbs: \(what)\n\(Arguments.usage)" }
}

struct Arguments {
  /// Where the journal's database and the photos are.
  var data = "."
  /// Of the loopback interface; 0: any.
  var port: UInt16?
  var isBroken = false

  static let usage = """
    usage: Breadcrumbs [--data DIRECTORY] [--port N] [--broken]

      --data DIRECTORY  where its database and photos are; default: here
      --port N          takes commands at http://127.0.0.1:N as well; 0: any port
      --broken          sheds nothing, and hears of nothing

    Commands on standard input: `help` lists them.
    """

  init(_ words: some Sequence<String>) throws(UsageError) {
    var words = Array(words)[...]
    while let word = words.popFirst() {
      switch word {
      case "--broken": isBroken = true
      case "--data":
        guard let path = words.popFirst() else { throw UsageError("--data: which directory?") }
        data = path
      case "--port":
        guard let number = words.popFirst().flatMap(UInt16.init) else {
          throw UsageError("--port: a number from 0 to 65535")
        }
        port = number
      default: throw UsageError("what is \(word)?")
      }
    }
  }
}
