// What every panel gets.

/**
 * @typedef {object} Page
 * @property {import("../api/Client.js").Client} client
 * @property {import("../api/NodeInfo.js").NodeInfo} node
 * @property {import("../api/HealthWatch.js").HealthWatch} health
 * @property {import("../state/Saved.js").Saved} settings stays in the browser
 * @property {import("../state/Saved.js").Saved} tab stays in the tab: the key and the conversation
 */

export {}
