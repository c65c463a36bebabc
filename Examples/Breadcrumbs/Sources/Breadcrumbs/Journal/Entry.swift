/// A day of the journey.
struct Entry: Hashable, Sendable {
  /// The number, from 1 on. The entry's photo has the same number.
  var number: Int
  /// The date, as YYYY-MM-DD.
  var date: String
  var location: String
  var title: String
  var text: String
}

extension Entry {
  /// The entries of a new journal; `Scene.all` has their views.
  static let first: [Entry] = [
    Entry(
      number: 1, date: "2026-05-02", location: "Lago di Mergozzo", title: "The lake at first light",
      text: "Only a heron was up. The coffee lasted exactly until the sun was over the ridge."),
    Entry(
      number: 2, date: "2026-05-03", location: "Passo San Giacomo", title: "Snow on the pass",
      text: "Three hours up, one down. Left a glove at the cairn, for the next hiker."),
    Entry(
      number: 3, date: "2026-05-06", location: "Barolo", title: "Green in five shades",
      text: "Every hill has a dog, and every dog has an opinion on bicycles."),
    Entry(
      number: 4, date: "2026-05-09", location: "Cinque Terre", title: "The sea in the evening",
      text: "Missed the last train on purpose."),
    Entry(
      number: 5, date: "2026-05-19", location: "Erg Chebbi", title: "The dunes before noon",
      text: "The sand sings when one runs down. Twice up again to be sure."),
    Entry(
      number: 6, date: "2026-06-11", location: "Hurtigruten", title: "The ferry in the rain",
      text: "Eleven hours of grey, and not the same one twice."),
    Entry(
      number: 7, date: "2026-06-14", location: "Rago", title: "Into the forest",
      text: "Midges. Also a bridge made of one rope, and then of none."),
    Entry(
      number: 8, date: "2026-06-29", location: "Reine", title: "A full moon, not needed",
      text: "It stays light enough to read. Read until four."),
    Entry(
      number: 9, date: "2026-09-21", location: "Abisko", title: "Northern lights",
      text: "First a green thread, then the whole curtain. We were silent for an hour."),
    Entry(
      number: 10, date: "2026-10-04", location: "Home", title: "The same hill as always",
      text: "It has been here all the time."),
  ]
}
