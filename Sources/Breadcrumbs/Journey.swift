/// What the journal has in it when it is new: an entry for each of the photos.
enum Journey {
  struct Page {
    var date: String
    var title: String
    var text: String
  }

  static let pages: [Page] = [
    Page(
      date: "2011-06-04", title: "The lake at first light",
      text: """
        Up before everybody else. No wind at all, and the far shore twice, once upside down. I sat on the \
        jetty until the coffee was cold. A grebe dived and left one ring that went all the way across.
        """),
    Page(
      date: "2011-06-05", title: "The pass",
      text: """
        Snow on both sides of the road and none on it. From the top you can see where we slept, and, says \
        the map, where we are going to. We left a stone on the heap, as one does.
        """),
    Page(
      date: "2011-06-07", title: "Vineyards",
      text: """
        Rows and rows, combed over the hills. An old man explained to us which side of which slope, and \
        why; we understood that it matters.
        """),
    Page(
      date: "2011-06-09", title: "The sea in the evening",
      text: """
        It went from gold to red to a violet that no photo has. Children threw stones at the path that \
        the sun laid on the water, and hit it each time.
        """),
    Page(
      date: "2011-06-12", title: "The desert",
      text: """
        Nothing, in great detail. The wind writes lines and rubs them out. Two litres each, and an hour \
        in the shadow of the car.
        """),
    Page(
      date: "2011-06-14", title: "The ferry in the rain",
      text: """
        Five hours in grey between grey and grey. Somebody played the harmonica, not well, and it was \
        exactly right.
        """),
    Page(
      date: "2011-06-15", title: "The forest",
      text: """
        Moss on everything that stands still. We spoke more quietly without having agreed on it.
        """),
    Page(
      date: "2011-06-17", title: "The full moon",
      text: """
        Bright enough to read the map by, if we had known where on it we were. The tent threw a shadow.
        """),
    Page(
      date: "2011-06-19", title: "Northern lights",
      text: """
        At first a cloud, we thought. Then it moved like a curtain that somebody walks behind. Nobody \
        found a word, and after a while nobody looked for one.
        """),
    Page(
      date: "2011-06-23", title: "Home, in the morning",
      text: """
        The last hundred miles we didn't stop. Pink over the hills that we have known all our lives, \
        and that looked, for once, like somewhere else.
        """),
  ]
}
