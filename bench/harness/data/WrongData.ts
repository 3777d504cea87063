// A data set that cannot be used, as one sentence with its path.
export class WrongData extends Error {}
