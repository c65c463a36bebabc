/// The output of `dormouse events`: a line for each event. A line that is wider than the terminal
/// is wrapped with an indent.
///
/// - Parameter clock: the event's time as the reader's clock shows it.
public func renderEvent(
  _ event: EventRecord, clock: String, width: Int? = nil, color: Bool = false
) -> String {
  func paint(_ text: String, _ hue: Color?) -> String {
    hue.map { color ? $0.paint(text) : text } ?? text
  }
  var fields = [paint(escaped(clock), .dim)]
  if let worker = event.worker { fields.append(paint(escaped(worker), .bold)) }
  if let from = event.from, let to = event.to {
    let change = from == to ? escaped(to) : "\(escaped(from)) → \(paint(escaped(to), .ofState(to)))"
    fields.append("\(change):")
  }
  fields.append(paint(escaped(event.text), hue(of: event)))
  let lines = wrapped(fields.joined(separator: " "), to: width, indent: 4)
  return lines.joined(separator: "\n") + "\n"
}

private func hue(of event: EventRecord) -> Color? {
  switch event.kind {
  case "failed", "jetsam": .red
  case "refused", "lost": .yellow
  case "pressure": .ofPressure(event.level ?? "")
  case "shadow": .magenta
  case "policy", "daemon": .cyan
  default: nil
  }
}
