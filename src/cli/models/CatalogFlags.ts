// `--data-dir` and `--catalog` of the commands that read and change a node's models. They must name what the node was
// started with, in flags or in the environment.
import { settingFlags } from "../shared/SettingFlags.ts"

export const catalogFlags = { dataDir: settingFlags.dataDir, catalog: settingFlags.catalog }
