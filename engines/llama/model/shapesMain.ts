// The program of the thread that compiles grammars: from what a request demands of its replies to tables.
import { serveGrammars } from "../compiler/GrammarThread.ts"
import { replyShape } from "./Shapes.ts"

serveGrammars(replyShape)
