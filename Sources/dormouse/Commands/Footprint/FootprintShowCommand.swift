import ArgumentParser
import FootprintTrace

struct FootprintShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Draw a recorded footprint, with its warnings and states.",
    discussion: """
      Each column of the terminal shows the highest footprint of its time, in the colour of the \
      worker's state. A triangle is a memory warning, with what it freed. A dot is a change of \
      state. The file of --svg also shows the kinds of memory. docs/footprint.md describes the \
      format of recordings.

      Examples:
        dormouse footprint show web.footprint --svg web.svg
      """)
  @OptionGroup var over: OverOption
  @Option(
    help: ArgumentHelp(
      "List this many warnings and changes of state, or `all`.", valueName: "count"))
  var marks = LineCount(limit: 20)
  @OptionGroup var drawing: TerminalDrawing
  @Option(
    help: ArgumentHelp("Also draw it into this SVG file.", valueName: "file"),
    completion: .file())
  var svg: String?
  @Flag(help: "Print JSON, and no picture (docs/json.md).") var json = false
  @Argument(
    help: "A recording of `dormouse footprint record`; `-` is standard input.",
    completion: .file())
  var file: String

  func run() throws {
    let limit = try over.bytes()
    let recording = try RecordingFiles.read(file)
    if let svg { try PictureFile(svg).write(recording.picture(limit: limit)) }
    if json { return try Output.json(RecordingSummary(recording, name: file, limit: limit)) }
    let lines = renderRecording(
      recording, limit: limit, style: drawing.style, maxMarks: marks.limit)
    try Output.line(lines.joined(separator: "\n"))
  }
}
