// Search in the documentation: the index and lunr are loaded at the first key press.
(() => {
  const root = new URL(document.currentScript.dataset.root.replace(/\/?$/, "/"), location.href);
  const query = document.getElementById("query");
  const results = document.getElementById("results");
  const article = document.querySelector("article");
  const menu = document.querySelector("details.menu");
  if (matchMedia("(max-width: 60rem)").matches) menu.open = false;

  let loading = null;
  const load = () => {
    loading ??= Promise.all([
      fetch(new URL("search/search_index.json", root)).then(answer => {
        if (!answer.ok) throw new Error(`the search index answered ${answer.status}`);
        return answer.json();
      }),
      new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = new URL("search/lunr.js", root).href;
        script.onload = done;
        script.onerror = () => failed(new Error("the search program did not load"));
        document.head.append(script);
      }),
    ]).then(([{ docs }]) => {
      const index = lunr(function () {
        this.ref("location");
        this.field("title", { boost: 10 });
        this.field("text");
        for (const doc of docs) this.add(doc);
      });
      return { index, docs: new Map(docs.map(doc => [doc.location, doc])) };
    });
    return loading;
  };

  const matching = (index, words) =>
    index.query(request => {
      for (const word of words) {
        request.term(lunr.stemmer(new lunr.Token(word)).toString(), { boost: 10 });
        request.term(word, { boost: 5, wildcard: lunr.Query.wildcard.TRAILING });
      }
    });

  const show = (nodes, visible) => {
    results.replaceChildren(...nodes);
    results.hidden = !visible;
    article.hidden = visible;
  };

  const entry = doc => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = new URL(doc.location, root).href;
    link.textContent = doc.title;
    const text = document.createElement("p");
    text.textContent = doc.text.slice(0, 160) + (doc.text.length > 160 ? "…" : "");
    item.append(link, text);
    return item;
  };

  const search = async () => {
    const words = query.value.toLowerCase().match(/[\p{L}\p{N}_-]{2,}/gu) ?? [];
    if (!words.length) return show([], false);
    const title = document.createElement("h1");
    try {
      const { index, docs } = await load();
      const found = matching(index, words).slice(0, 20);
      title.textContent = found.length ? `Results for “${query.value}”` : `No page has “${query.value}”`;
      const list = document.createElement("ol");
      list.append(...found.map(hit => entry(docs.get(hit.ref))));
      show([title, list], true);
    } catch (error) {
      loading = null;
      title.textContent = `Search failed: ${error.message}`;
      show([title], true);
    }
  };
  query.addEventListener("input", search);
  query.addEventListener("keydown", event => {
    if (event.key === "Escape") {
      query.value = "";
      search();
    }
  });
})();
