// The panel Node: models, devices, the supervision tree, usage and health. What needs an operator's key says so.
import { sentenceOf } from "../../api/Problems.js"
import { dollars, duration, Stopwatch } from "../../api/Receipts.js"
import { snippetsOf } from "../../api/Snippets.js"
import { byId, h, sayIn } from "../../page/Elements.js"
import { makeRequestView } from "../../page/RequestView.js"
import { bytesText, modelMetrics } from "./Metrics.js"
import { makeModelRows } from "./ModelRows.js"
import { makeTree } from "./TreeView.js"

/** A refresh is two to four requests of a rate of 100 a minute. */
const refreshMs = 5_000

const missingScope =
  'Devices, what runs, and loading need a key with the superadmin scope: "edgewise keys create --org ops --scope superadmin" makes one.'

/** @param {import("../../page/Page.js").Page} page */
export const makeNode = ({ client, node }) => {
  const problem = byId("node-problem", HTMLElement)
  const scope = byId("node-scope", HTMLElement)
  const facts = byId("node-facts", HTMLElement)
  const devices = byId("node-devices", HTMLElement)
  const usage = byId("node-usage", HTMLElement)
  const done = byId("node-done", HTMLElement)
  const operatorCards = ["node-devices-card", "node-tree-card"].map((id) => byId(id, HTMLElement))
  const tree = makeTree(byId("node-tree", HTMLElement))
  /** @type {Set<string>} */
  const busy = new Set()
  let isShown = false
  let lastAction = { path: "/v1/models/load", id: "" }

  const say = sayIn(problem)
  const code = makeRequestView(byId("node-code", HTMLElement), () =>
    snippetsOf({
      method: "POST",
      base: client.base,
      path: lastAction.path,
      json: { model_name: lastAction.id || (node.engines[0]?.id ?? "MODEL") },
      answer: "json",
    }),
  )

  /**
   * @param {"load" | "unload"} action
   * @param {string} id
   */
  const act = async (action, id) => {
    say("")
    busy.add(id)
    lastAction = { path: `/v1/models/${action}`, id }
    code.refresh()
    refresh()
    const watch = new Stopwatch()
    try {
      await client.json(lastAction.path, { json: { model_name: id } })
      done.textContent = `${id} ${action === "load" ? "loaded" : "unloaded"} in ${duration(watch.elapsedMs)}. Price: none.`
    } catch (error) {
      say(sentenceOf(error))
    }
    busy.delete(id)
    refresh()
  }
  const rows = makeModelRows(byId("node-models", HTMLElement), act)

  const fact = (/** @type {string} */ name, /** @type {string} */ value) =>
    h("div", { class: "fact" }, h("span", {}, name), h("strong", {}, value))

  const showUsage = () => {
    const known = node.usage
    byId("node-usage-card", HTMLElement).hidden = known === undefined
    if (known === undefined) return
    /** @type {Map<string, { requests: number, microDollars: number }>} */
    const byModel = new Map()
    for (const { micro_dollars, model } of known.receipts) {
      const sum = byModel.get(model) ?? { requests: 0, microDollars: 0 }
      byModel.set(model, { requests: sum.requests + 1, microDollars: sum.microDollars + micro_dollars })
    }
    const spent = [...byModel].map(([model, { microDollars, requests }]) =>
      h("tr", {}, h("td", {}, model), h("td", {}, String(requests)), h("td", {}, dollars(microDollars))),
    )
    const left = known.payment_method ? "payment method" : dollars(known.balance_micro_dollars)
    const table = h(
      "table",
      {},
      h("caption", {}, `The newest ${known.receipts.length} receipts of the last 24 hours`),
    )
    const head = ["model", "answers", "price"].map((name) => h("th", { scope: "col" }, name))
    table.append(h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...spent))
    usage.replaceChildren(
      h("p", {}, `${known.organization} / ${known.user}, ${known.scope}. Balance: `, h("strong", {}, left)),
      ...(spent.length === 0 ? [] : [table]),
    )
  }

  const showDevices = async () => {
    const { gpus, processes } = await client.json("/v1/gpu/status")
    const bars = gpus.map((/** @type {any} */ { memory, name, utilization }) => {
      const used = h("meter", {
        min: 0,
        max: memory.total_mb,
        value: memory.used_mb,
        "aria-label": `Memory of ${name}`,
      })
      const text = `${memory.used_gb} of ${memory.total_gb} GB, ${utilization.gpu_percent} % busy`
      return h(
        "div",
        { class: "device" },
        h("strong", {}, name),
        used,
        h("span", { class: "quiet-note" }, text),
      )
    })
    const list = processes.map((/** @type {any} */ { memory_mb, name }) =>
      h("tr", {}, h("td", {}, name), h("td", {}, `${memory_mb} MB`)),
    )
    devices.replaceChildren(...bars, h("table", {}, h("tbody", {}, ...list)))
  }

  const refresh = async () => {
    if (!isShown || document.hidden) return
    try {
      const [health, text, status] = await Promise.all([
        fetch(client.url("/health")).then((response) => response.json()),
        client
          .fetch("/metrics")
          .then((response) => response.text())
          .catch(() => ""),
        client.key() === "" || node.usage === undefined ? undefined : client.json("/v1/models/status"),
      ])
      const metrics = modelMetrics(text)
      facts.replaceChildren(
        fact("health", health.status),
        fact("version", health.runtime.split(" ")[0].split("/")[1] ?? ""),
        fact("region", health.node),
        ...(metrics.budgetBytes === undefined
          ? []
          : [fact("memory", `${bytesText(metrics.claimedBytes ?? 0)} of ${bytesText(metrics.budgetBytes)}`)]),
      )
      rows.show(
        node.engines.map(({ id, kind, owned_by }) => ({
          id,
          kind,
          about: node.about(id) || owned_by,
          state: status?.loading_status[id] ?? "unknown",
          failure: status?.failures?.[id],
          metrics: metrics.models.get(id) ?? {},
        })),
        node.isOperator,
        busy,
      )
      if (node.isOperator) {
        const [answer] = await Promise.all([client.json("/v1/node/tree"), showDevices()])
        tree.show(answer.tree)
      }
      if (problem.dataset.of === "refresh") say("")
    } catch (error) {
      problem.dataset.of = "refresh"
      say(sentenceOf(error))
      return
    }
    delete problem.dataset.of
  }

  node.addEventListener("change", () => {
    scope.hidden = node.usage === undefined || node.isOperator
    scope.textContent = missingScope
    byId("node-models-card", HTMLElement).hidden = node.engines.length === 0
    for (const card of operatorCards) card.hidden = !node.isOperator
    if (!node.isOperator) {
      tree.clear()
      devices.replaceChildren()
    }
    showUsage()
    refresh()
  })
  setInterval(refresh, refreshMs)
  return {
    /** @param {boolean} now */
    shown: (now) => {
      isShown = now
      // Usage and models may have changed since the page was opened.
      if (now) node.refresh()
    },
  }
}
