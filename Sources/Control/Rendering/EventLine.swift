/// The output of `dormouse events`: a line for each event. A line that is wider than the terminal
/// is wrapped with an indent.
///
/// - Parameter clock: the event's time as the reader's clock shows it.
public func renderEvent(
  _ event: EventRecord, clock: String, width: Int? = nil, color: Bool = false
) -> String {
  var fields = [Color.dim.paint(escaped(clock), if: color)]
  if let worker = event.worker { fields.append(Color.bold.paint(escaped(worker), if: color)) }
  if let from = event.from, let to = event.to {
    let shown = Color.ofState(to).paint(escaped(to), if: color)
    fields.append(from == to ? "\(escaped(to)):" : "\(escaped(from)) → \(shown):")
  }
  let text = escaped(event.text)
  fields.append(hue(of: event)?.paint(text, if: color) ?? text)
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
