// The search of the documentation, for pages opened from the disk as well: sections that contain all words of the query,
// those with a word in their title first.
(function () {
  "use strict";
  var list = document.getElementById("mkdocs-search-results");
  var field = document.getElementById("mkdocs-search-query");
  if (!list || !field) {
    return;
  }

  function sections(words) {
    var found = [];
    // Each page is in the index as a whole, too, without an anchor.
    var all = searchIndex.docs.filter(function (entry) { return entry.location.indexOf("#") >= 0; });
    all.forEach(function (section) {
      var title = section.title.toLowerCase();
      var text = section.text.toLowerCase();
      var score = 0;
      var fits = words.every(function (word) {
        score += title.indexOf(word) >= 0 ? 10 : 0;
        score += Math.min(text.split(word).length - 1, 5);
        return title.indexOf(word) >= 0 || text.indexOf(word) >= 0;
      });
      if (fits) {
        found.push({ section: section, score: score });
      }
    });
    found.sort(function (one, other) { return other.score - one.score; });
    return found.slice(0, 50);
  }

  function excerpt(text, word) {
    var from = Math.max(text.toLowerCase().indexOf(word) - 80, 0);
    return (from ? "... " : "") + text.substring(from, from + 240) + " ...";
  }

  function show() {
    var words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.textContent = "";
    if (!words.length) {
      return;
    }
    var found = sections(words);
    if (!found.length) {
      list.textContent = "No section contains all of these words.";
    }
    found.forEach(function (one) {
      var entry = document.createElement("article");
      var heading = entry.appendChild(document.createElement("h3"));
      var link = heading.appendChild(document.createElement("a"));
      link.href = base_url + "/" + one.section.location;
      link.textContent = one.section.title;
      entry.appendChild(document.createElement("p")).textContent = excerpt(one.section.text, words[0]);
      list.appendChild(entry);
    });
  }

  var index = document.createElement("script");
  index.src = base_url + "/search/search_index.js";
  index.onload = function () {
    field.value = new URLSearchParams(window.location.search).get("q") || "";
    field.addEventListener("input", show);
    show();
  };
  document.body.appendChild(index);
})();
