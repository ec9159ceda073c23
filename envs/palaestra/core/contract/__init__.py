"""What an author writes, and the tables made from it: fields, record layouts, actions, spaces, rows of ids."""
