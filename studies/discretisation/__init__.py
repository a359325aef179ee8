"""Do the published settings solve their equations?"""
