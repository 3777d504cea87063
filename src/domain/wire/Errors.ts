// Every expected failure of a request, one class each. `failure` of a class declares its status, whether it is the node's
// or the caller's fault, whether a retry may help, and its text; the code on the wire is the class's name (protocol 3.2).
// Nothing else declares any of these. Code decides by the class and its declaration, never by the text.
export * from "./errors/CallerErrors.ts"
export * from "./errors/NodeErrors.ts"
