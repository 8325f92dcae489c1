# ruff: noqa: E101, E501
"""Page pieces of the ``html`` observation mode, reconstructed from recordings of the original site.

They are data: unbalanced tags, blank lines and the unused scripts are part of what an agent in this mode reads.
Braces are places for values, which :mod:`.markup` escapes.
"""

SMALL_HEAD = """<!DOCTYPE html>
<html>
  <head>
    <link rel="stylesheet" href="/static/style.css">
    <link rel="stylesheet" href="https://cdnjs.cloudflare.com/ajax/libs/font-awesome/4.7.0/css/font-awesome.min.css">
    <link rel="stylesheet" href="https://maxcdn.bootstrapcdn.com/bootstrap/3.4.1/css/bootstrap.min.css">
    <link rel="icon" href="data:,">
  </head>
"""

INDEX_BODY = """  <body>
    <!-- Code reference: https://bootsnipp.com/snippets/m13mN -->
    <div class="container" style="margin-top: 8%;">
      <div class="col-md-6 col-md-offset-3">     
        <div class="row">
          <div id="logo" class="text-center">
            <h2>WebShop</h2>
          </div>
          <div id="instruction-text" class="text-center">
            <h4>Instruction: <br>{instruction}</h4>
          </div>
          <form role="form" id="form-buscar" method="post" action="{url}">
            <div class="form-group">
              <div class="input-group">
                <input id="search_input" class="form-control" type="text" name="search_query" placeholder="Search..." required/>
                <span class="input-group-btn">
                  <button class="btn btn-success" type="submit"><i class="glyphicon glyphicon-search" aria-hidden="true"></i>Search</button>
                </span>
              </div>
            </div>
          </form>
        </div>            
      </div>
    </div>
  </body>
</html>"""

DONE_BODY = """  <body>
    <!-- Code reference: https://bootsnipp.com/snippets/m13mN -->
    <div class="container" style="margin-top: 8%;">
      <div class="col-md-6 col-md-offset-3">     
        <div class="row">
          <div id="thankyou" class="text-center">
            <h1>Thank you for shopping with us!</h1>
          </div>
          <div id="stats" class="text-center">
            <h3 align="mturk_code">Your code: </h3>
            <p><pre>None</pre> (Paste it in your MTurk interface.)</p>
            <div style="display:none">
              <h2 align="left">Purchased</h2>
              <hr class="solid">
              <h4 id="asin">asin<pre>{asin}</pre></p>
              <h4 id="options">options<pre>{options}</pre></h4>
              <h4 id="purchased_attrs">attrs<pre>None</pre></h4>
              <h4 id="purchased-category">category<pre>None</pre></h4>
              <h4 id="purchased-query">query<pre>None</pre></h4>
              <h4 id="purchased-pc">product category<pre>None</pre></h4>
              <h2 align="left">Target</h2>
              <hr class="solid">
              <h4 id="goal-asin">asin<pre></pre></p>
              <h4 id="goal-options">options<pre></pre></h4>
              <h4 id="goal-attrs">attrs<pre></pre></h4>
              <h4 id="goal-price">price upper<pre></pre></h4>
              <h4 id="goal-instruction-text">instuction text<pre></pre></h4>
              <h4 id="goal-category">category<pre></pre></h4>
              <h4 id="goal-pc">product category<pre></pre></h4>
              <h4 id="goal-query">query<pre></pre></h4>
              <h4>Goal <div id="goal"><pre>None</pre></div></h4>
              <h2 align="left">Reward</h2>
            </div>
            <hr class="solid">
      			<h3   id="reward">Your score (min 0.0, max 1.0)<pre>{reward}</pre></h3>
            <h4 hidden>Reward Details <div id="reward_info"><pre>None</pre></div></h4>
          </div>
        </div>            
      </div>
    </div>
  </body>
</html>"""

HEAD = """<!DOCTYPE html>
<html>
  <head>
    <link rel="stylesheet" href="/static/style.css">
    <link rel="stylesheet" href="https://maxcdn.bootstrapcdn.com/bootstrap/3.4.1/css/bootstrap.min.css">
    <link rel="stylesheet" href="https://cdnjs.cloudflare.com/ajax/libs/font-awesome/4.0.3/css/font-awesome.css\t">
    <script src="https://ajax.googleapis.com/ajax/libs/jquery/3.5.1/jquery.min.js"></script>
    <script src="https://stackpath.bootstrapcdn.com/bootstrap/4.3.1/js/bootstrap.bundle.min.js"></script>
    <link rel="icon" href="data:,">
  </head>
"""

TOP = """  <body>
    <div class="container py-5">
      <div class="row top-buffer">
        <div class="col-sm-6">
          <div id="instruction-text" class="text-center">
            <h4>Instruction:<br>{instruction}</h4>
          </div>
        </div>
      </div>
      <div class="row top-buffer">
        <form method="post" action="{url}">
          <button type="submit" class="btn btn-success">Back to Search</button>
        </form>
      </div>
"""

RESULTS_TOP = """      <div class="row top-buffer">
        <div class="col-sm-8">
          <div class="display-4">
            <h3>Page {page} (Total results: {total})</h3>
          </div>
          
            <div class="col-sm-2">
{back}            </div>
            <div class="col-sm-2">
{onward}            </div>
          
        </div>
      </div>

      <div class="row top-buffer">
        
"""

PAGE_BUTTON = """              <form method="post" action="{url}">
                <button type="submit" class="btn btn-primary">{text}</button>
              </form>
"""

HIT = """        <div class="col-lg-12 mx-auto list-group-item">
          <div class="col-lg-4">
            <img src="{image}" class="result-img">
          </div>
          <div class="col-lg-8">
            <ul class="list-group shadow">
                <div class="media align-items-lg-center flex-column flex-lg-row p-3">
                  <div class="media-body order-2 order-lg-1 searched-product">
                    
                    <h4 class="mt-0 font-weight-bold mb-2 product-asin"><a class="product-link" href="{url}">{asin}</a></h5>
                    <h4 class="mt-0 font-weight-bold mb-2 product-title">{title}</h5>
                    <div class="d-flex align-items-center justify-content-between mt-1">
                      <h5 class="font-weight-bold my-2 product-price">{price}</h6>
                    </div>
<!--
                    <div class="d-flex align-items-center justify-content-between mt-1">
                      <h5 class="font-weight-bold my-2 product-category">{category}</h5>
                    </div>
                    <div class="d-flex align-items-center justify-content-between mt-1">
                      <h5 class="font-weight-bold my-2 product-query">{query}</h5>
                    </div>
                    <div class="d-flex align-items-center justify-content-between mt-1">
                      <h5 class="font-weight-bold my-2 product-product_category">{path}</h5>
                    </div>
-->
                  </div>
                </div>
            </ul>
          </div>
        </div>
        
"""

RESULTS_END = """      </div>
    </div>
  </body>
</html>"""

ITEM = """      <div class="row top-buffer">
        <form method="post" action="{back}">
          <button type="submit" class="btn btn-primary">&lt; Prev</button>
        </form>
      </div>
      <div class="row top-buffer">
        <div class="col-md-4 mb-4 mb-md-0">
          <div class="row top-buffer">
            <img id="product-image" src="{image}" class="item-page-img">
          </div>
          
{groups}        </div>
        <div class="col-md-6">
          <h2>{title}</h2>
          <h4>Price: {price}</h4>
          <h4>Rating: N.A.</h4>
          <div class="row top-buffer">
{buttons}            
          </div>
        </div>
        <div class="col-sm-2">
          <div class="row top-buffer">
            <form method="post" action="{buy}">
              <button type="submit" class="btn btn-lg purchase">Buy Now</button>
            </form>
          </div>
        </div>
      </div>
    </div>
  </body>
"""

GROUP = """            <div class="row top-buffer">
              <h4>{name}</h4>
              <div class="radio-toolbar">
                
{radios}              </div>
            </div>
          
"""

RADIO = """                  
                  
                  
                  <input type="radio" id="radio_{name}{number}" name="{name}" value="{value}" data-url="{url}">
                  <label for="radio_{name}{number}">{value}</label>
                
"""

SUB_BUTTON = """            <div class="col-sm-3" name="{name}">
              <form method="post" action="{url}">
                <button class="btn btn-primary" type="submit">{text}</button>
              </form>
            </div>
"""

SCRIPT = """  <script>
    $(document).ready(function() {
      $('input:radio').each(function() {
        //console.log($(this).val());
        let options = JSON.parse(`@OPTIONS@`);
        let optionValues = $.map(options, function(value, key) { return value });
        //console.log(optionValues);
        if (optionValues.includes($(this).val())) {
          $(this).prop('checked', true);

          let option_to_image = JSON.parse(`@IMAGES@`);
//          console.log($(this).val());
//          console.log(options);
//          console.log(option_to_image);
          let image_url = option_to_image[$(this).val()];

          //console.log(image_url);
          if (image_url) {
            $("#product-image").attr("src", image_url);
          }
        }
        
        // reload with updated options
        this.addEventListener("click", function() {
          window.location.href = this.dataset.url;
        });

      });
    });
  </script>
</html>"""

SUB = """      <div class="row top-buffer">
        <form method="post" action="{url}">
          <button type="submit" class="btn btn-primary">&lt; Prev</button>
        </form>
      </div>
      <div class="row top-buffer">
        <div class="col-md-12">
          <div class="row top-buffer">
            <div class="col-sm-6" name="{name}">
              <div class="card card-body">
                {inside}
              </div>
            </div>
          </div>
        </div>
      </div>
    </div>
  </body>
</html>"""
